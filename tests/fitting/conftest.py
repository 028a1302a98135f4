"""A small graph, and a cache of cuts of the test's own."""

import numpy as np
import pytest

from distgnn.datasets import GraphData


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of the cache."""
    monkeypatch.setenv("DISTGNN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def arrays() -> dict:
    """An undirected graph of 60 vertices as PyG has it: both arcs of each edge, no masks."""
    random = np.random.default_rng(3)
    edges = random.integers(0, 60, (2, 200))
    return {
        "edge_index": np.concatenate([edges, edges[::-1]], 1),
        "x": random.standard_normal((60, 8)).astype(np.float32),
        "y": random.integers(0, 4, 60),
    }


@pytest.fixture
def graph(arrays) -> GraphData:
    """The same with masks."""
    third = np.arange(60) % 3
    edges = arrays.pop("edge_index")
    splits = {name: third == place for place, name in enumerate(("train_mask", "val_mask", "test_mask"))}
    return GraphData.from_arrays(edges, **arrays, **splits)
