"""Downloads by name end in a folder that loads, or in one line and nothing on disk. No network is used."""

import contextlib
import gc
import importlib.util
import io
import pickle
import shutil
import socket
import threading
import urllib.error
import urllib.request
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from distgnn.datasets import download, downloads, load_graph
from distgnn.datasets.downloads import fetch
from distgnn.errors import GraphFormatError, GraphWarning, InputError


def save(array) -> bytes:
    stream = io.BytesIO()
    if isinstance(array, dict):
        np.savez(stream, **array)
    else:
        scipy.sparse.save_npz(stream, array)
    return stream.getvalue()


def packed(method=zipfile.ZIP_DEFLATED, **files) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.npz", content)
    return stream.getvalue()


def answer_with(content: bytes):
    return lambda name, url, path, *_, **__: path.write_bytes(content)


def test_reddit_is_unpacked(tmp_path, monkeypatch):
    data = {"feature": np.ones((3, 2)), "label": np.array([0, 1, 2]), "node_types": np.array([1, 2, 3])}
    adjacency = scipy.sparse.coo_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    archive = packed(reddit_data=save(data), reddit_graph=save(adjacency))
    monkeypatch.setattr(downloads, "fetch", answer_with(archive))
    folder = download("reddit", tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["reddit_data.npz", "reddit_graph.npz"]
    assert load_graph("reddit", tmp_path).num_nodes == 3
    assert download("reddit", tmp_path) == folder


def test_a_graph_of_ogb_is_unpacked(ogb_folder, tmp_path, monkeypatch):
    folder = ogb_folder("arxiv", "time", [[0, 1]], 4, [0, 1, 2, 3], node_feat=[[1]] * 4)
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "arxiv")).read_bytes()
    shutil.rmtree(folder)
    monkeypatch.setattr(downloads, "_find_url", lambda name: "http://nowhere.invalid/arxiv.zip")
    monkeypatch.setattr(downloads, "fetch", answer_with(b"PK"))
    with pytest.raises(GraphFormatError, match="download is damaged"):
        download("ogbn-arxiv", tmp_path / "root")
    assert not (tmp_path / "root").exists()
    monkeypatch.setattr(downloads, "fetch", answer_with(archive))
    folder = download("ogbn-arxiv", tmp_path / "root")
    assert [path.name for path in (tmp_path / "root").iterdir()] == [folder.name] == ["ogbn_arxiv"]
    assert load_graph("ogbn-arxiv", tmp_path / "root").num_nodes == 4
    assert download("ogbn-arxiv", tmp_path / "root") == folder


def test_the_address_comes_from_ogb(tmp_path, monkeypatch):
    pytest.importorskip("ogb", reason="the ogb extra is not installed")
    assert downloads._find_url("ogbn-products").endswith("products.zip")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'distgnn\[ogb\]'"):
        download("ogbn-arxiv", tmp_path)


def test_ogb_asks_nobody_for_newer_versions_while_tests_run(monkeypatch):
    version = pytest.importorskip("ogb.version")
    started = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread.name))
    importlib.reload(version)
    assert not started


def test_planetoid_is_kept_without_pickles(tmp_path, monkeypatch):
    feats, labels = scipy.sparse.csr_matrix(np.eye(600, 2, dtype=np.float32)), np.ones((600, 1), np.int32)
    objects = {"allx": feats, "x": feats[:2], "tx": feats[:1], "ally": labels, "y": labels[:2], "ty": labels[:1]}

    def fetch(name, url, path, *_):
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


ONE = np.zeros(3)
DATA = {"feature": np.zeros((3, 1)), "label": ONE, "node_types": ONE}
GRAPH = save({"row": ONE, "col": ONE, "shape": ONE})
HOSTILE = {
    "cut": (b"PK", "the download is damaged"),
    "a bomb": (packed(reddit_data=bytes(1 << 26), reddit_graph=b"1"), "unpacks to 67.1 MB, more than 20 times"),
    "an odd method": (packed(zipfile.ZIP_LZMA, reddit_data=b"1", reddit_graph=b"1"), "packed by a method that is no"),
    "no graph": (packed(reddit_data=save(DATA)), r"it lacks reddit_graph\.npz"),
    "no arrays": (packed(reddit_data=b"PK", reddit_graph=b"PK"), "damaged or not the expected"),
    "other rows": (packed(reddit_data=save(DATA | {"label": np.zeros(4)}), reddit_graph=GRAPH), "not of one graph"),
}


@pytest.mark.parametrize(("content", "says"), HOSTILE.values(), ids=HOSTILE)
def test_a_damaged_archive_leaves_nothing(content, says, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "fetch", answer_with(content))
    with pytest.raises(GraphFormatError, match=says):
        download("reddit", tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_other_names_are_refused_with_the_most_similar(tmp_path):
    with pytest.raises(InputError, match=r"no download for 'corra' \(did you mean cora\?\); known are ogbn-arxiv"):
        download("corra", tmp_path)
    (tmp_path / "pubmed").mkdir()
    with pytest.raises(InputError, match="remove it first"):
        download("pubmed", tmp_path)


@contextlib.contextmanager
def server(answer: bytes):
    """A server that gives one answer, byte by byte as it stands, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with contextlib.suppress(OSError):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/graph.zip"
        thread.join()
    with warnings.catch_warnings():  # urllib leaves the socket of a broken answer to the collector, which warns of it
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS = {
    "garbage": (b"\x00\xff\x00" * 99 + b"\n", "could not be fetched"),
    "nothing": (b"", "could not be fetched"),
    "a long line": (OK + b"X: " + b"a" * 100_000 + b"\r\n\r\nabc", "could not be fetched"),
    "many headers": (OK + b"X: a\r\n" * 500 + b"\r\nabc", "could not be fetched"),
    "a broken chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", "cut short"),
    "a chunk cut": (OK + b"Transfer-Encoding: chunked\r\n\r\n10\r\nabc", "cut short"),
    "cut short": (OK + b"Content-Length: 10\r\n\r\nabc", "cut short"),
    "empty": (OK + b"Content-Length: 0\r\n\r\n", "answer was empty"),
    "promised too long": (OK + b"Content-Length: 1000\r\n\r\nabc", "at most 100 B(ytes)? are taken"),
    "too long": (OK + b"\r\n" + b"a" * 1000, "longer than"),
    "not found": (b"HTTP/1.1 404 No\r\n\r\n", "404|No"),
    "another protocol": (b"HTTP/1.1 302 Go\r\nLocation: file:///etc/passwd\r\n\r\n", "could not be fetched"),
}


@pytest.mark.parametrize(("answer", "message"), ANSWERS.values(), ids=ANSWERS)
def test_a_wrong_answer_is_one_line(answer, message, tmp_path):
    with server(answer) as url, pytest.raises(InputError, match=message) as caught:
        fetch("a graph", url, tmp_path / "file", most_bytes=100)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("head", [b"Content-Length: 3\r\n\r\n", b"\r\n"])
def test_a_right_answer_is_the_file(head, tmp_path):
    with server(OK + head + b"abc") as url:
        fetch("a graph", url, tmp_path / "file", most_bytes=100)
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_a_large_answer_is_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "BLOCK", 10)
    said = []
    with server(OK + b"Content-Length: 200\r\n\r\n" + b"a" * 200) as url:
        fetch("a graph", url, tmp_path / "file", say=said.append)
    assert len(said) == 10 and said[-1].startswith("a graph: 200")
