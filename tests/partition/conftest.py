"""A partition folder with every kind of file, and graphs to cut."""

import shutil

import pytest

from distgnn.datasets import load_graph
from distgnn.kernels.runtime import threads
from distgnn.partition import partition_graph
from distgnn.partition.core import sorted_edges
from distgnn.partition.on_disk.run import EDGE_BYTES

from .folders import make_graph


@pytest.fixture(scope="session")
def three_parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three") / "parts"
    partition_graph(make_graph("sparse", weighted=True, typed=True), 3, folder, clusters=True)
    return folder


@pytest.fixture
def folder(three_parts, tmp_path):
    """A copy, to be damaged."""
    return shutil.copytree(three_parts, tmp_path / "parts")


@pytest.fixture(scope="session")
def planted():
    """Communities that were planted: their borders are where a cut should be."""
    return load_graph("communities:nodes=2000,seed=1").edge_list()


@pytest.fixture
def on_disk(monkeypatch):
    """No graph fits in memory."""
    monkeypatch.setitem(EDGE_BYTES, "cmr", 10**12)


@pytest.fixture
def set_num_threads():
    """`threads.set_num_threads`; the number before comes back, also where the test fails."""
    before = threads.get_num_threads()
    yield threads.set_num_threads
    threads.set_num_threads(before)


@pytest.fixture(scope="session")
def hubs():
    return load_graph("rmat:scale=11,edge_factor=8,feats=0,classes=0,seed=1")


@pytest.fixture(scope="session")
def power_law(hubs):
    return hubs.edge_list()


@pytest.fixture(params=[1, 8])
def small_pieces(request, monkeypatch):
    """So many threads, and pieces, blocks and buckets of some rows."""
    here = ("partition.core.sorted_edges", "partition.core.edges", "partition.on_disk.cluster")
    for module in ("kernels.runtime.threads", *here):
        monkeypatch.setattr(f"distgnn.{module}.FEW_EDGES", 0)
    for name, value in (("PIECE_EDGES", 700), ("BLOCK_EDGES", 64), ("BUCKET_EDGES", 100), ("BUCKETS_AT_ONCE", 5)):
        monkeypatch.setattr(sorted_edges, name, value)
    monkeypatch.setattr(threads, "THREAD_WORK", 1)
    monkeypatch.setattr("distgnn.partition.refinement.edge_moves.FEW_EDGES", 1)
    monkeypatch.setattr("distgnn.partition.refinement.groups.ALONE", 0)
    monkeypatch.setattr(threads._pool(), "num_threads", request.param)
    return request.param
