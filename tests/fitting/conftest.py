"""A small graph, and a cache of cuts of the test's own."""

import numpy as np
import pytest

from distgnn.datasets import GraphData
from distgnn.fitting import source


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


@pytest.fixture
def cut(monkeypatch):
    """`cut(data)` gives whether it was cut, and what was said."""
    cuts = []
    made = source.partition_graph
    monkeypatch.setattr(source, "partition_graph", lambda *args, **more: (cuts.append(args), made(*args, **more))[1])

    def cut(data, parts=1, config=None, split=None, seed=0) -> tuple[bool, str]:
        before, said = len(cuts), []
        with source.cut_of(data, parts, config, split, seed, say=said.append) as found:
            assert found.manifest["num_parts"] == parts
        return len(cuts) > before, "\n".join(said)

    return cut
