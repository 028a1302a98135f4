"""Splits of edges: held out of the graph unless it says otherwise, and one line for every mistake."""

import numpy as np
import pytest

from distgnn.datasets import GraphData, load_graph
from distgnn.errors import DistGNNError


def test_links_that_come_again_are_allowed_where_the_graph_says_so(tmp_path):
    graph = GraphData.from_arrays([[0, 1], [1, 2]], 3, False, valid_edges=np.array([[1, 0]]), held_out=False)
    assert load_graph(graph.save(tmp_path / "graph")).held_out is False


def test_edges_with_labels_may_be_edges_of_the_graph():
    labels = {"train_edges": [[0, 1]], "train_edge_labels": [2], "valid_edges": [[1, 2]], "valid_edge_labels": [0]}
    GraphData.from_arrays([[0, 1], [1, 2]], 3, False, **labels)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"valid_edges": [[0, 3], [2, 1]]}, "valid_edges: row 1, the edge 2 - 1, is still an edge of the graph"),
        ({"test_edges": [[0, 9]]}, "test_edges: row 0 holds vertex 9; ids run from 0 to 3"),
        ({"test_edges": [[0, 3]], "test_negatives": [[0, -2]]}, "test_negatives: row 0 holds vertex -2"),
        ({"test_edges": [[0.5, 3]]}, "test_edges: expected integer vertex ids"),
        ({"test_edges": [0, 3]}, "test_edges: expected shape [M, 2]"),
        ({"valid_edges": [[0, 3]], "valid_negative_targets": [[1], [2]]}, "expected shape [M, K], K vertices per row"),
        ({"test_negative_targets": [[1]]}, "(no edges of this split)"),
        ({"train_edges": [[0, 1]], "train_edge_labels": [0], "valid_edges": [[0, 3]]}, "have no labels"),
        ({"valid_edge_labels": [1]}, "valid_edge_labels: these labels have no edges"),
        ({"train_edges": [[0, 1]], "train_edge_labels": [1, 2]}, "expected shape [1]"),
        ({"train_edges": [[0, 1]], "train_edge_labels": [-1]}, "row 0 holds -1"),
        (
            {"train_edges": [[0, 1]], "train_edge_labels": [1], "test_edges": [[0, 3]], "test_edge_labels": [0.5]},
            "test_edge_labels: float64 here, int64 in another split",
        ),
        ({"node_values": [1.0, 2.0]}, "node_values: expected shape [4] or [4, T]"),
        ({"node_values": [[1, np.nan]] * 4}, "node_values: row 0 must be finite, or NaN as a whole"),
        ({"graph_ids": [0, 0, 1, -1]}, "graph_ids: row 3 holds id -1"),
    ],
)
def test_wrong_splits_are_named(fields, says):
    arrays = {name: np.array(value) for name, value in fields.items()}
    with pytest.raises(DistGNNError) as error:
        GraphData.from_arrays([[0, 1], [1, 2], [2, 3]], 4, False, **arrays)
    assert says in str(error.value) and "\n" not in str(error.value)
