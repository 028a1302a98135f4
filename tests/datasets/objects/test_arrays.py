"""Edges and columns as arrays, tables, matrices and NetworkX graphs."""

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

from distgnn.datasets import GraphData, as_graph_data
from distgnn.errors import GraphWarning, InputError


@pytest.mark.parametrize(
    ("edges", "found"),
    [
        *[(edges, [[0, 1], [1, 2], [2, 0]]) for edges in (
            np.array([[0, 1], [1, 2], [2, 0]]), np.array([[0, 1, 2], [1, 2, 0]]), ([0, 1, 2], [1, 2, 0]),
            [[0, 1, 2], [1, 2, 0]], torch.tensor([[0, 1, 2], [1, 2, 0]]), [[0, 1], [1, 2], [2, 0]],
        )],
        ([[0, 1], [2, 3]], [[0, 1], [2, 3]]),
        (([0, 1], [2, 3]), [[0, 2], [1, 3]]),
        (np.array([[4], [2]]), [[4, 2]]),
        (torch.zeros(2, 0, dtype=torch.long), []),
    ],
)  # fmt: skip
def test_edges_come_in_either_shape(edges, found):
    assert GraphData.from_arrays(edges, 5).edges.tolist() == found
    assert as_graph_data(edges, num_nodes=5).edges.tolist() == found


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_networkx(kind):
    graph = getattr(networkx, kind)()
    graph.add_nodes_from("abcd")
    graph.add_edge("c", "a", weight=2.5)
    graph.add_edge("b", "d")
    found = as_graph_data(graph, weighted=True, feats=np.eye(4))
    assert found.directed == kind.endswith("DiGraph")
    pairs = found.edges.tolist() if found.directed else np.sort(found.edges, axis=1).tolist()
    assert sorted(pairs) == sorted([[2, 0], [1, 3]] if found.directed else [[0, 2], [1, 3]])
    assert sorted(found.edge_weight.tolist()) == [1, 2.5] and found.num_nodes == 4
    with pytest.warns(UserWarning, match=r"left out: edge attribute weight \(take it with weighted=True\)"):
        assert as_graph_data(graph).edge_weight is None
    assert as_graph_data(graph, weighted=False).edge_weight is None  # a warning would be an error


def attributed():
    graph = networkx.Graph()
    for node, place, label, mask in (("a", 1.0, 0, True), ("b", 2.0, 1, False)):
        graph.add_node(node, x=place, pair=[place, 0], y=label, train_mask=mask)
    graph.add_edge("b", "a", cost=3.0)
    return graph


def test_networkx_attributes_are_taken_by_name():
    graph = attributed()
    with pytest.warns(GraphWarning, match=r"left out: attribute pair$"):
        found = as_graph_data(graph, feats="x", labels="y", train="train_mask", edge_weight="cost", name="mine")
    assert (found.feats.tolist(), found.labels.tolist(), found.train.tolist()) == ([[1], [2]], [0, 1], [0])
    assert (found.edge_weight.tolist(), found.name) == ([3], "mine")
    with pytest.warns(
        GraphWarning, match=r"left out: attribute x, attribute y .take it with labels='y'., attribute tr"
    ):
        assert as_graph_data(graph, feats="pair").feats.tolist() == [[1, 0], [2, 0]]
    with pytest.warns(GraphWarning, match=r"left out: attribute pair, edge attribute cost$"):
        assert as_graph_data(graph, feats=None, labels=None, train=None).feats is None


@pytest.mark.parametrize(
    ("feats", "message"), [("z", "feats: 'a' has no attribute 'z'"), ("pair", "'pair' has values of different len")]
)
def test_networkx_attributes_that_are_no_columns_are_refused(feats, message):
    graph = attributed()
    graph.nodes["b"]["pair"] = [1, 2, 3]
    with pytest.raises(InputError, match=message):
        as_graph_data(graph, feats=feats, labels="y", train="train_mask")


PATH = [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("edges", "fields", "message"),
    [
        (([0, 1], [1]), {}, "must be two equal lists"),
        ([[0, 1]], {"featurez": 1}, r"'featurez' \(did you mean feature\?\)"),
        ([[0, 1]], {"x": np.ones((2, 1)), "feats": np.ones((2, 1))}, "x and feats are the same field"),
        ([["a", "b"]], {}, r"expected integer vertex ids, found <U1; dg\.renumber"),
        ([[0, 10**15]], {}, r"dg\.renumber takes other ids"),
        (PATH, {"train": np.array([0, 1, 1, 0, 0]), "num_nodes": 4}, r"row 2 repeats vertex 1; .* have 4 rows"),
        (PATH, {"train": [0.5, 1]}, r"integer vertex ids, found float64: row 0 holds \[0\.5\]"),
        ([[0, 1, 5]], {}, r"found \[1, 3\]: a third column is no part .*; give it as edge_weight=edges\[:, 2\]"),
        ([[0, 1], [1, 2.0**60]], {}, r"row 1 holds \[1\.0, 1\.15"),
        ([[0, 1], [float("nan"), 2]], {}, "row 1 has no vertex"),
        ([[0, 1]], {"feats": [[1e39], [0]]}, "feats: row 0 holds a number beyond float32"),
        ([[0, 1]], {"feats": [["a"], ["b"]]}, "feats: expected numbers, found text, as 'a'"),
        ([[0, 1]], {"feats": [1j, 2j]}, "feats: expected numbers, found complex128"),
        ([[0, 1]], {"feats": np.ma.masked_equal([[1], [2]], 2)}, "feats: row 1 is masked out"),
        (PATH[1:], {"feats": np.ones((3, 1)), "num_nodes": 3}, "outside the graph, 3 .*they seem to start at 1"),
        (PATH, {"train": np.ones((4, 10), bool)}, r"choose one column: mask\[:, 0\]"),
        (np.zeros((0, 2)), {}, "the graph has 0 vertices"),
        ([[0, 1]], {"directed": "no"}, "directed must be True or False, found 'no'"),
    ],
)
def test_wrong_arrays_are_refused(edges, fields, message):
    with pytest.raises(InputError, match=message):
        GraphData.from_arrays(edges, **fields)


def test_scipy_both_ways():
    matrix = scipy.sparse.csr_matrix(np.array([[0, 2, 0], [2, 0, 3], [0, 3, 1]]))
    with pytest.warns(UserWarning, match="not taken as edge weights .*weighted=True"):
        assert GraphData.from_scipy(matrix).edge_weight is None
    assert GraphData.from_scipy(matrix, weighted=False).edge_weight is None  # a warning would be an error
    arcs = GraphData.from_scipy(matrix, weighted=True)
    assert arcs.directed and arcs.edge_weight.tolist() == [2, 2, 3, 3, 1]
    halved = GraphData.from_scipy(matrix, directed=False, weighted=True, name="mine")
    assert (halved.name, halved.edges.tolist()) == ("mine", [[0, 1], [1, 2], [2, 2]])
    assert halved.edge_weight.tolist() == [2, 3, 1]


@pytest.mark.parametrize(
    ("matrix", "weighted", "says"),
    [
        ([[0, 1], [0, 0]], None, "not symmetric"),
        ([[0, 1], [2, 0]], True, "weights are not symmetric"),
        ([[1, 1, 1], [1, 1, 1]], None, "square"),
    ],
)
def test_scipy_refuses_what_is_not_symmetric_or_square(matrix, weighted, says):
    with pytest.raises(InputError, match=says):
        GraphData.from_scipy(scipy.sparse.csr_matrix(np.array(matrix)), directed=False, weighted=weighted)
