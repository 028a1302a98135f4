"""The graph that flows are tested with."""

import pytest

from distgnn.datasets import load_graph


@pytest.fixture(scope="session")
def planted():
    """Communities that were planted: their borders are where a cut should be."""
    return load_graph("communities:nodes=3000,seed=1").edge_list()
