"""Splits of edges: held out of the graph, negatives that are no edges, and one line for every mistake."""

import numpy as np
import pytest

from distgnn.datasets import GraphData, load_graph
from distgnn.errors import DistGNNError, InputError


def make_graph(directed: bool = False, **fields) -> GraphData:
    """Sixty vertices with parallel edges, reciprocal ones and a self-loop."""
    random = np.random.default_rng(3)
    edges = random.integers(0, 60, (300, 2))
    edges[:6] = edges[6:12]
    edges[12:18] = edges[6:12, ::-1]
    edges[18] = (5, 5)
    return GraphData.from_arrays(edges, 60, directed, edge_weight=np.arange(300, dtype=np.float32), **fields)


def pairs_of(edges, either_way: bool) -> set:
    return {tuple(sorted(pair)) if either_way else tuple(pair) for pair in np.asarray(edges).tolist()}


@pytest.mark.parametrize(("directed", "both"), [(False, False), (True, False), (True, True)])
def test_held_out_edges_pass_no_messages_and_negatives_are_no_edges(directed, both):
    graph = make_graph(directed)
    split = graph.split_links(0.1, 0.2, seed=4, either_way=both)
    either_way = both or not directed
    every = pairs_of(graph.edges, either_way)
    left, valid, test = (pairs_of(edges, either_way) for edges in (split.edges, split.valid_edges, split.test_edges))
    assert not (left & valid or left & test or valid & test)
    assert left | valid | test == every
    loops = {pair for pair in every if pair[0] == pair[1]}
    assert loops <= left
    joined = len(every - loops)
    assert (len(split.valid_edges), len(split.test_edges)) == (int(0.1 * joined), int(0.2 * joined))
    for name in ("valid", "test"):
        negatives = getattr(split, f"{name}_negatives")
        assert negatives.shape == getattr(split, f"{name}_edges").shape
        assert not pairs_of(negatives, either_way) & every
        assert (negatives[:, 0] != negatives[:, 1]).all()
    weights = {tuple(edge): weight for edge, weight in zip(graph.edges.tolist(), graph.edge_weight, strict=True)}
    assert all(tuple(edge) in weights for edge in split.edges.tolist())
    assert len(split.edge_weight) == len(split.edges)
    split.check()
    again = graph.split_links(0.1, 0.2, seed=4, either_way=both)
    assert np.array_equal(again.test_edges, split.test_edges)
    assert not np.array_equal(graph.split_links(0.1, 0.2, seed=5).test_edges, split.test_edges)


def test_a_folder_keeps_the_splits(tmp_path):
    split = make_graph(node_values=np.ones((60, 2)), graph_ids=np.arange(60) // 20).split_links(0.1, 0.2)
    split.valid_negative_targets = np.full((len(split.valid_edges), 3), 7)
    back = load_graph(split.save(tmp_path / "graph"))
    for name in ("valid_edges", "test_edges", "valid_negatives", "valid_negative_targets", "node_values", "graph_ids"):
        assert np.array_equal(getattr(back, name), getattr(split, name)), name
    assert (back.num_values, back.num_graphs, back.held_out) == (2, 3, True)


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


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        ((0.5, 0.5), "less than 1"),
        ((-0.1, 0.2), "shares from 0"),
        ((0, 0), "more than 0"),
        ((0.1, 0.001), "few"),
    ],
)
def test_impossible_shares(shares, says):
    with pytest.raises(InputError, match=says):
        make_graph().split_links(*shares)


def test_a_complete_graph_has_no_negatives_and_a_split_graph_is_not_split_again():
    everyone = np.stack(np.triu_indices(12, 1), axis=1)
    with pytest.raises(InputError, match="no negatives to draw"):
        GraphData.from_arrays(everyone, 12, False).split_links(0.1, 0.1)
    with pytest.raises(InputError, match="has a split of its edges already"):
        make_graph().split_links(0.1, 0.1).split_links(0.1, 0.1)
