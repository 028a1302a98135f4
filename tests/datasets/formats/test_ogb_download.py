import importlib.util
import shutil

import pytest

from distgnn.datasets import download, downloads
from distgnn.errors import GraphFormatError, InputError


@pytest.fixture
def served(monkeypatch, ogb_folder, tmp_path):
    """A download that finds an archive as OGB packs it: folder `arxiv` with its files."""
    folder = ogb_folder("arxiv", "time", [[0, 1]], 4, [0, 1, 2, 3], node_feat=[[1]] * 4)
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "arxiv")
    shutil.rmtree(folder)
    monkeypatch.setattr(downloads, "_find_url", lambda name: "http://nowhere.invalid/arxiv.zip")
    monkeypatch.setattr(downloads, "fetch", lambda name, url, path, say: shutil.copy(packed, path))
    return tmp_path / "root"


def test_a_download_ends_in_a_folder_that_loads(served):
    from distgnn.datasets import load_graph

    folder = download("ogbn-arxiv", served)
    assert folder == served / "ogbn_arxiv"
    assert [path.name for path in served.iterdir()] == ["ogbn_arxiv"]
    assert load_graph("ogbn-arxiv", served).num_nodes == 4
    assert download("ogbn-arxiv", served) == folder


def test_a_damaged_download_leaves_nothing(served, monkeypatch):
    monkeypatch.setattr(downloads, "fetch", lambda name, url, path, say: path.write_bytes(b"PK"))
    with pytest.raises(GraphFormatError, match="download is damaged"):
        download("ogbn-arxiv", served)
    assert not served.exists()


def test_no_network_leaves_nothing(served, monkeypatch):
    def fail(name, url, path, say):
        path.write_bytes(b"half")
        raise InputError("no network")

    monkeypatch.setattr(downloads, "fetch", fail)
    with pytest.raises(InputError, match="no network"):
        download("ogbn-arxiv", served)
    assert not served.exists()


def test_without_the_extra_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'distgnn\[ogb\]'"):
        download("ogbn-arxiv", tmp_path)


def test_the_address_comes_from_ogb():
    pytest.importorskip("ogb.utils.url", reason="the ogb extra is not installed")
    assert downloads._find_url("ogbn-products").endswith("products.zip")


def test_a_half_folder_is_not_touched(tmp_path):
    (tmp_path / "ogbn_arxiv").mkdir()
    with pytest.raises(InputError, match="remove it first"):
        download("ogbn-arxiv", tmp_path)
