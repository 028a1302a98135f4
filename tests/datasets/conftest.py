"""Small graphs that tests write and break."""

import gzip
from pathlib import Path

import numpy as np
import pytest

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


def write_csv(path: Path, rows) -> None:
    """Rows of numbers as .csv.gz, as pandas writes them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(",".join(str(value) for value in np.atleast_1d(row)) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def ogb_folder(tmp_path):
    """A function that writes an OGB folder of text files: write(name, split, edges, num_nodes, labels, **tables)."""

    def write(name: str, split: str, edges, num_nodes: int, labels, **tables) -> Path:
        raw = tmp_path / name / "raw"
        write_csv(raw / "edge.csv.gz", edges)
        write_csv(raw / "num-node-list.csv.gz", [num_nodes])
        write_csv(raw / "num-edge-list.csv.gz", [len(edges)])
        write_csv(raw / "node-label.csv.gz", labels)
        for table, rows in tables.items():
            write_csv(raw / f"{table.replace('_', '-')}.csv.gz", rows)
        for part, ids in {"train": [0, 1], "valid": [2], "test": [3]}.items():
            write_csv(tmp_path / name / "split" / split / f"{part}.csv.gz", ids)
        return tmp_path / name

    return write
