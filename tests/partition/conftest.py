"""A partition folder with every kind of file."""

import pytest

from distgnn.kernels.runtime import threads
from distgnn.partition import partition_graph

from .folders import make_graph


@pytest.fixture
def folder(tmp_path):
    partition_graph(make_graph("sparse", weighted=True, typed=True), 3, tmp_path / "parts")
    return tmp_path / "parts"


@pytest.fixture
def set_num_threads():
    """`threads.set_num_threads`; the number before comes back, also where the test fails."""
    before = threads.get_num_threads()
    yield threads.set_num_threads
    threads.set_num_threads(before)
