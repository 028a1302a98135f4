"""Random typed graphs with everything that may be awkward in one."""

from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets import GraphData
from distgnn.datasets.findings.findings import Findings

WIDTHS = {"paper": 12, "author": 7, "field": 3}  # features; a venue has none
CLASSES = 4


def typed_tables(seed: int = 0, scale: int = 1, one_width: int = 0, sparse: bool = True) -> dict[Any, Any]:
    """Tables as `GraphData.from_types` takes them, of a random graph.

    There are a type of one vertex (venue, which only one rank owns), a type without features, one with sparse ones (if
    `sparse`), a relation without arcs, two relations between the same types, a self-relation with self-loops and
    doubles, hubs, isolated vertices, and, for one seed in four, a type without vertices.

    Args: scale: of the numbers of vertices and arcs; one_width: all features have it.
    """
    random = np.random.default_rng([seed, 0x74797065])
    counts = {"paper": 24 * scale, "author": 15 * scale, "venue": 1, "field": 6 * scale}

    def rows(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    def arcs(source: str, target: str, count: int) -> np.ndarray:
        ends = np.stack([random.integers(0, max(counts[kind] - 2, 1), count * scale) for kind in (source, target)])
        ends[1, : count * scale // 4] = 0  # a hub; the last two vertices of a type are isolated
        ends[:, :2] = ends[:, 2:4]  # doubles
        return ends

    tables: dict[Any, Any] = {kind: {"x": rows(counts[kind], one_width or width)} for kind, width in WIDTHS.items()}
    if sparse:
        tables["field"]["x"] = scipy.sparse.csr_matrix(np.maximum(tables["field"]["x"], 0))
    labels, kept = random.integers(0, CLASSES, counts["paper"]), random.random(counts["paper"])
    labels[:CLASSES], labels[-1], kept[:CLASSES] = range(CLASSES), -1, 0.1
    masks = {"train_mask": kept < 0.5, "val_mask": (kept >= 0.5) & (kept < 0.75), "test_mask": kept >= 0.75}
    tables["paper"] |= {"y": labels, **masks}
    tables["venue"] = {"num_nodes": 1}
    cites = arcs("paper", "paper", 60)
    cites[:, 4] = 5  # a self-loop
    tables |= {
        ("author", "writes", "paper"): {
            "edge_index": arcs("author", "paper", 40),
            "edge_weight": np.abs(rows(40 * scale)),
        },
        ("author", "reviews", "paper"): {"edge_index": arcs("author", "paper", 12), "edge_attr": rows(12 * scale, 2)},
        ("paper", "cites", "paper"): {"edge_index": cites},
        ("paper", "in", "venue"): {"edge_index": arcs("paper", "venue", 8)},
        ("field", "of", "paper"): {"edge_index": np.zeros((2, 0), np.int64)},
        ("author", "knows", "field"): {"edge_index": arcs("author", "field", 10), "edge_attr": rows(10 * scale, 5)},
    }
    if seed % 4 == 3:
        tables |= {"editor": {"num_nodes": 0}, ("editor", "edits", "paper"): np.zeros((2, 0), np.int64)}
    return tables


def typed_graph(seed: int = 0, **options: Any) -> GraphData:
    """The graph of `typed_tables`."""
    return GraphData.from_types(typed_tables(seed, **options), findings=Findings(), name="typed")


def same_hetero(left: Any, right: Any) -> None:
    """Raise AssertionError unless two HeteroData have the same types, relations and columns, bit by bit."""
    import torch

    assert left.metadata() == right.metadata()
    for one in (*left.node_stores, *left.edge_stores):
        other = right[one._key]
        assert set(one.keys()) == set(other.keys()), one._key
        for name, value in one.items():
            assert torch.equal(value, other[name]) if torch.is_tensor(value) else value == other[name], (one._key, name)
