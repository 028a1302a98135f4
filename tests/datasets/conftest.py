"""Small graphs that tests write and break."""

from pathlib import Path

import numpy as np
import pytest
from valid_graphs import write_ogb

from distgnn.datasets import GraphData


@pytest.fixture
def small_graph() -> GraphData:
    """Six vertices: a duplicate, a reciprocal pair, a self-loop, an isolated vertex (5), one without label (4)."""
    edges = np.array([[0, 1], [0, 1], [1, 0], [2, 2], [1, 2], [3, 4]])
    return GraphData.from_arrays(
        edges,
        num_nodes=6,
        directed=True,
        feats=np.arange(12, dtype=np.float32).reshape(6, 2),
        labels=np.array([0, 1, 2, 0, -1, 1]),
        train=np.array([0, 1]),
        valid=np.array([2]),
        test=np.array([3, 4]),
        name="small",
    )


@pytest.fixture
def graph_folder(small_graph, tmp_path) -> Path:
    """The small graph as a plain graph folder."""
    return small_graph.save(tmp_path / "small")


@pytest.fixture
def ogb_folder(tmp_path):
    """A function that writes an OGB folder of text files: write(name, split, edges, num_nodes, labels, **tables)."""
    return lambda name, *given, **tables: write_ogb(tmp_path / name, *given, **tables)
