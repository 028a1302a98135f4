import numpy as np
import pytest
import scipy.sparse

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.system.other_libraries import import_dgl


@pytest.mark.parametrize(
    ("edges", "fields", "message"),
    [
        (([0, 1], [1]), {}, "must be two equal lists"),
        ([[0, 1]], {"featurez": 1}, r"'featurez' \(did you mean feature\?\)"),
        ([[0, 1]], {"x": np.ones((2, 1)), "feats": np.ones((2, 1))}, "x and feats are the same field"),
        ([["a", "b"]], {}, r"expected integer vertex ids, found <U1; dg\.renumber"),
        ([[0, 10**15]], {}, r"dg\.renumber takes other ids"),
        (
            [[0, 1], [1, 2], [2, 3]],
            {"train": np.array([0, 1, 1, 0, 0]), "num_nodes": 4},
            r"row 2 repeats vertex 1; .* have 4 rows",
        ),
        ([[0, 1], [1, 2], [2, 3]], {"train": [0.5, 1]}, r"integer vertex ids, found float64: row 0 holds \[0\.5\]"),
        (
            [[0, 1, 5]],
            {},
            r"found \[1, 3\]: a third column is no part of an edge; give it as edge_weight=edges\[:, 2\]",
        ),
        ([[0, 1], [1, 2.0**60]], {}, r"row 1 holds \[1\.0, 1\.15"),
        ([[0, 1], [float("nan"), 2]], {}, "row 1 has no vertex"),
        ([[0, 1]], {"feats": [[1e39], [0]]}, "feats: row 0 holds a number beyond float32"),
        ([[0, 1]], {"feats": [["a"], ["b"]]}, "feats: expected numbers, found text, as 'a'"),
        ([[0, 1]], {"feats": [1j, 2j]}, "feats: expected numbers, found complex128"),
        ([[0, 1]], {"feats": np.ma.masked_equal([[1], [2]], 2)}, "feats: row 1 is masked out"),
        (
            [[1, 2], [2, 3]],
            {"feats": np.ones((3, 1)), "num_nodes": 3},
            "outside the graph, 3 .*they seem to start at 1",
        ),
        ([[0, 1], [1, 2], [2, 3]], {"train": np.ones((4, 10), bool)}, r"choose one column: mask\[:, 0\]"),
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
    assert arcs.directed
    assert arcs.num_edges == 5
    assert arcs.edge_weight.tolist() == [2, 2, 3, 3, 1]
    halved = GraphData.from_scipy(matrix, directed=False, weighted=True, name="mine")
    assert halved.name == "mine"
    assert halved.edges.tolist() == [[0, 1], [1, 2], [2, 2]]
    assert halved.edge_weight.tolist() == [2, 3, 1]


def test_scipy_refuses_what_is_not_symmetric_or_square():
    with pytest.raises(InputError, match="not symmetric"):
        GraphData.from_scipy(scipy.sparse.csr_matrix(np.array([[0, 1], [0, 0]])), directed=False)
    with pytest.raises(InputError, match="weights are not symmetric"):
        GraphData.from_scipy(scipy.sparse.csr_matrix(np.array([[0, 1], [2, 0]])), directed=False, weighted=True)
    with pytest.raises(InputError, match="square"):
        GraphData.from_scipy(scipy.sparse.csr_matrix(np.ones((2, 3))))


@pytest.mark.parametrize(
    ("form", "name", "values"),
    [
        ("csr", "indptr", [0, -5, 3]),
        ("csr", "indptr", [0, 1000, 3]),
        ("csr", "indptr", [0, 1000, 0]),
        ("csr", "indptr", [0, 2**31 - 1, -2]),
        ("csc", "indices", [0, 1, 2]),
        ("csr", "indices", [0, -1, 1]),
        ("coo", "row", [0, 0, 9]),
    ],
)
def test_arrays_of_a_matrix_that_point_outside_it_are_refused(form, name, values):
    matrix = scipy.sparse.coo_matrix(np.array([[1, 1], [0, 1]])).asformat(form)
    getattr(matrix, name)[:] = values
    with pytest.raises(InputError, match=f"the arrays of this {form}_matrix do not belong together"):
        GraphData.from_scipy(matrix)
    with pytest.raises(InputError, match="do not belong together"):
        GraphData.from_arrays([[0, 1]], feats=matrix)


def test_there_and_back_through_dgl(small_graph):
    small_graph.edge_weight = np.arange(6, dtype=np.float32)
    theirs = small_graph.to_dgl()
    assert theirs.num_edges() == 6
    assert theirs.edata["weight"].tolist() == list(range(6))
    again = GraphData.from_dgl(theirs, name="again")
    assert again.num_nodes == 6
    assert again.test.tolist() == [3]  # vertex 4 has no label, so its mask is off
    for field in ("edges", "feats", "labels", "train", "valid"):
        assert np.array_equal(getattr(again, field), getattr(small_graph, field)), field


def test_dgl_gets_both_arcs_in_order_of_their_ids(small_graph):
    graph = GraphData.from_arrays(small_graph.edges, 6, directed=False, edge_weight=np.arange(6))
    edges = graph.edge_list("stored", "add")
    theirs = graph.to_dgl(edges)
    assert theirs.num_edges() == edges.num_arcs
    assert theirs.in_degrees().tolist() == edges.in_degrees().tolist()
    assert theirs.edata["weight"].tolist() == [0, 1, 2, 4, 5, *[1] * 6, 0, 1, 2, 4, 5]
    halved = GraphData.from_dgl(theirs, directed=False)
    assert halved.num_edges == edges.num_edges


def test_types_and_edge_data_come_from_dgl_and_go_back():
    dgl = import_dgl()
    heterogeneous = dgl.heterograph(
        {("author", "writes", "paper"): ([0, 1], [0, 2]), ("paper", "cites", "paper"): ([0, 1, 1], [1, 0, 2])}
    )
    graph = GraphData.from_dgl(dgl.to_homogeneous(heterogeneous))
    assert (graph.num_nodes, graph.node_types.tolist()) == (5, [0, 0, 1, 1, 1])
    assert graph.edges.tolist() == [[0, 2], [1, 4], [2, 3], [3, 2], [3, 4]]
    assert graph.edge_types.tolist() == [0, 0, 1, 1, 1]
    graph.edge_feats = np.arange(10, dtype=np.float32).reshape(5, 2)
    graph.edge_weight = np.arange(5, dtype=np.float32)
    back = GraphData.from_dgl(graph.to_dgl())
    for name in ("edges", "node_types", "edge_types", "edge_feats", "edge_weight"):
        np.testing.assert_array_equal(getattr(back, name), getattr(graph, name), err_msg=name)
    one_type = GraphData.from_dgl(dgl.to_homogeneous(dgl.heterograph({("v", "e", "v"): ([0], [1])})))
    assert one_type.node_types is None and one_type.edge_types is None


def test_there_and_back_through_pyg():
    pytest.importorskip("torch_geometric")
    from cut_graphs import random_graph

    graph = random_graph(3, directed=True, weighted=True, typed=True)
    data = graph.to_pyg()
    assert data.validate() and data.num_nodes == 60 and data.edge_index.tolist() == graph.edges.T.tolist()
    back = GraphData.from_pyg(data)
    names = ("edges", "feats", "labels", "edge_weight", "edge_feats", "edge_types", "node_types", "train", "valid")
    for name in names:
        expected = getattr(graph, name)
        if name in ("train", "valid"):  # without vertices that have no label
            expected = np.intersect1d(expected, np.flatnonzero(graph.labels >= 0))
        np.testing.assert_array_equal(getattr(back, name), expected, err_msg=name)


def test_a_pyg_graph_that_does_not_fit_is_one_line():
    torch = pytest.importorskip("torch")
    pyg = pytest.importorskip("torch_geometric").data
    with pytest.raises(InputError, match=r"edge_index has shape \[3, 4\]: expected \[2, E\]"):
        GraphData.from_pyg(pyg.Data(edge_index=torch.zeros(3, 4).long(), num_nodes=5))
