"""A partition folder with every kind of file."""

import pytest

from distgnn.partition import partition_graph

from .folders import make_graph


@pytest.fixture
def folder(tmp_path):
    partition_graph(make_graph("sparse", weighted=True, typed=True), 3, tmp_path / "parts")
    return tmp_path / "parts"
