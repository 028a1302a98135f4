"""A partition folder with every kind of file, and graphs to cut."""

import shutil

import pytest

from distgnn.datasets import load_graph
from distgnn.kernels.runtime import threads
from distgnn.partition import partition_graph

from .folders import make_graph


@pytest.fixture(scope="session")
def three_parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three") / "parts"
    partition_graph(make_graph("sparse", weighted=True, typed=True), 3, folder)
    return folder


@pytest.fixture
def folder(three_parts, tmp_path):
    """A copy, to be damaged."""
    return shutil.copytree(three_parts, tmp_path / "parts")


@pytest.fixture(scope="session")
def power_law():
    return load_graph("rmat:scale=11,edge_factor=8,feats=0,classes=0,seed=1").edge_list()


@pytest.fixture(scope="session")
def planted():
    """Communities that were planted: their borders are where a cut should be."""
    return load_graph("communities:nodes=2000,seed=1").edge_list()


@pytest.fixture
def set_num_threads():
    """`threads.set_num_threads`; the number before comes back, also where the test fails."""
    before = threads.get_num_threads()
    yield threads.set_num_threads
    threads.set_num_threads(before)
