"""Downloads by name end in a folder that loads, or in one line and nothing on disk. No network is used."""

import importlib.util
import io
import shutil
import urllib.error
import urllib.request
import zipfile

import numpy as np
import pytest
import scipy.sparse

from distgnn.datasets import download, downloads, load_graph
from distgnn.errors import GraphFormatError, GraphWarning, InputError


def save(array) -> bytes:
    stream = io.BytesIO()
    if isinstance(array, dict):
        np.savez(stream, **array)
    else:
        scipy.sparse.save_npz(stream, array)
    return stream.getvalue()


@pytest.fixture
def reddit_archive(tmp_path):
    """DGL's archive of three vertices."""
    path = tmp_path / "packed.zip"
    data = {"feature": np.ones((3, 2)), "label": np.array([0, 1, 2]), "node_types": np.array([1, 2, 3])}
    adjacency = scipy.sparse.coo_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("reddit_data.npz", save(data))
        archive.writestr("reddit_graph.npz", save(adjacency))
    return path


def test_reddit_is_unpacked(reddit_archive, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "fetch", lambda name, url, path, *_: shutil.copy(reddit_archive, path))
    folder = download("reddit", tmp_path / "root")
    assert sorted(path.name for path in folder.iterdir()) == ["reddit_data.npz", "reddit_graph.npz"]
    assert load_graph("reddit", tmp_path / "root").num_nodes == 3
    assert download("reddit", tmp_path / "root") == folder


def test_a_graph_of_ogb_is_unpacked(ogb_folder, tmp_path, monkeypatch):
    folder = ogb_folder("arxiv", "time", [[0, 1]], 4, [0, 1, 2, 3], node_feat=[[1]] * 4)
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "arxiv")
    shutil.rmtree(folder)
    monkeypatch.setattr(downloads, "_find_url", lambda name: "http://nowhere.invalid/arxiv.zip")
    monkeypatch.setattr(downloads, "fetch", lambda name, url, path, say: path.write_bytes(b"PK"))
    with pytest.raises(GraphFormatError, match="download is damaged"):
        download("ogbn-arxiv", tmp_path / "root")
    assert not (tmp_path / "root").exists()
    monkeypatch.setattr(downloads, "fetch", lambda name, url, path, say: shutil.copy(archive, path))
    folder = download("ogbn-arxiv", tmp_path / "root")
    assert [path.name for path in (tmp_path / "root").iterdir()] == [folder.name] == ["ogbn_arxiv"]
    assert load_graph("ogbn-arxiv", tmp_path / "root").num_nodes == 4
    assert download("ogbn-arxiv", tmp_path / "root") == folder


def test_the_address_comes_from_ogb(tmp_path, monkeypatch):
    pytest.importorskip("ogb.utils.url", reason="the ogb extra is not installed")
    assert downloads._find_url("ogbn-products").endswith("products.zip")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'distgnn\[ogb\]'"):
        download("ogbn-arxiv", tmp_path)


def test_planetoid_is_kept_without_pickles(tmp_path, monkeypatch):
    feats, labels = scipy.sparse.csr_matrix(np.eye(600, 2, dtype=np.float32)), np.ones((600, 1), np.int32)
    objects = {"allx": feats, "x": feats[:2], "tx": feats[:1], "ally": labels, "y": labels[:2], "ty": labels[:1]}

    def fetch(name, url, path, *_):
        import pickle

        kind = url.split("ind.cora.")[1]
        value = {0: [1], 1: [0]} if kind == "graph" else objects.get(kind)
        path.write_bytes(b"600\n" if kind == "test.index" else pickle.dumps(value, 2))

    monkeypatch.setattr(downloads, "fetch", fetch)
    folder = download("cora", tmp_path)
    assert not list(folder.glob("ind.*"))
    with pytest.warns(GraphWarning, match="599 of 601 vertices have no edge"):
        graph = load_graph("cora", tmp_path)
    assert (graph.num_nodes, graph.num_edges, len(graph.valid)) == (601, 1, 500)


@pytest.mark.parametrize("name", ["cora", "reddit"])
def test_no_network_is_one_line_and_leaves_nothing(name, tmp_path, monkeypatch):
    def refuse(url, timeout):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(InputError, match="Name or service not known; is there a network") as caught:
        download(name, tmp_path / "root")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "root").exists()


def packed(method=zipfile.ZIP_DEFLATED, **files) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.npz", content)
    return stream.getvalue()


ONE = np.zeros(3)
DATA = {"feature": np.zeros((3, 1)), "label": ONE, "node_types": ONE}
HOSTILE = {
    "cut": (b"PK", "the download is damaged"),
    "a bomb": (
        packed(reddit_data=bytes(1 << 26), reddit_graph=b"1"),
        "unpacks to 67.1 MB, more than 20 times",
    ),
    "an odd method": (packed(zipfile.ZIP_LZMA, reddit_data=b"1", reddit_graph=b"1"), "packed by a method that is no"),
    "no graph": (packed(reddit_data=save(DATA)), r"it lacks reddit_graph\.npz"),
    "no arrays": (packed(reddit_data=b"PK", reddit_graph=b"PK"), "damaged or not the expected"),
    "other rows": (
        packed(
            reddit_data=save(DATA | {"label": np.zeros(4)}), reddit_graph=save({"row": ONE, "col": ONE, "shape": ONE})
        ),
        "not of one graph",
    ),
}


@pytest.mark.parametrize(("content", "says"), HOSTILE.values(), ids=HOSTILE)
def test_a_damaged_archive_leaves_nothing(content, says, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "fetch", lambda name, url, path, *_: path.write_bytes(content))
    with pytest.raises(GraphFormatError, match=says):
        download("reddit", tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_other_names_are_refused_with_the_most_similar(tmp_path):
    with pytest.raises(InputError, match=r"no download for 'corra' \(did you mean cora\?\); known are ogbn-arxiv"):
        download("corra", tmp_path)
    (tmp_path / "pubmed").mkdir()
    with pytest.raises(InputError, match="remove it first"):
        download("pubmed", tmp_path)
