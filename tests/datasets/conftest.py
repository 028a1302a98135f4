"""Small graphs that tests write and break."""

from pathlib import Path

import numpy as np
import pytest
from valid_graphs import write_ogb

from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import DistGNNError


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
def small_tables():
    """A function that gives tables of a typed graph: 3 papers, 2 authors, and what a test changes."""
    writes, cites = ("author", "writes", "paper"), ("paper", "cites", "paper")

    def tables(changed=()):
        given = {"paper": {"x": np.ones((3, 4), np.float32), "y": [0, 1, 1]}, "author": 2}
        return given | {writes: [[0, 1], [0, 2]], cites: {"edge_index": [[0, 1], [1, 2]]}} | dict(changed)

    return tables


@pytest.fixture
def ogb_folder(tmp_path):
    """A function that writes an OGB folder of text files: write(name, split, edges, num_nodes, labels, **tables)."""
    return lambda name, *given, **tables: write_ogb(tmp_path / name, *given, **tables)


@pytest.fixture
def read(tmp_path):
    """A function that gives the graph of a file with this name and content, and the lines that are said of it."""

    def of(name, content, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        found = Findings()
        return load_graph(str(path), findings=found, **options), found.lines()

    return of


@pytest.fixture
def refused(read):
    """A function that reads a file which is wrong: one line says so, with its name."""

    def of(name, content, says, **options):
        with pytest.raises(DistGNNError, match=says) as error:
            read(name, content, **options)
        assert "\n" not in str(error.value) and name in str(error.value)

    return of
