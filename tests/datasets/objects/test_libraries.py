"""Graphs of DGL and PyG: there and back, halved, in batches, of a homogeneous graph's types."""

import numpy as np
import pytest
import torch
from cut_graphs import random_graph

from distgnn.datasets import GraphData, as_graph_data
from distgnn.errors import GraphWarning, InputError
from distgnn.system.other_libraries import import_dgl

pyg = pytest.importorskip("torch_geometric.data")


@pytest.mark.parametrize("library", ["dgl", "pyg"])
def test_there_and_back(library):
    graph = random_graph(3, directed=True, weighted=True, typed=True)
    data = getattr(graph, f"to_{library}")()
    if library == "pyg":
        assert data.validate() and data.num_nodes == 60 and data.edge_index.tolist() == graph.edges.T.tolist()
    back = getattr(GraphData, f"from_{library}")(data, name="again")
    names = ("edges", "feats", "labels", "edge_weight", "edge_feats", "edge_types", "node_types", "train", "valid")
    for name in names:
        expected = getattr(graph, name)
        if name in ("train", "valid"):  # without vertices that have no label
            expected = np.intersect1d(expected, np.flatnonzero(graph.labels >= 0))
        np.testing.assert_array_equal(getattr(back, name), expected, err_msg=name)


def test_dgl_gets_both_arcs_in_order_of_their_ids(small_graph):
    graph = GraphData.from_arrays(small_graph.edges, 6, directed=False, edge_weight=np.arange(6))
    edges = graph.edge_list("stored", "add")
    theirs = graph.to_dgl(edges)
    assert theirs.num_edges() == edges.num_arcs
    assert theirs.in_degrees().tolist() == edges.in_degrees().tolist()
    assert theirs.edata["weight"].tolist() == [0, 1, 2, 4, 5, *[1] * 6, 0, 1, 2, 4, 5]
    assert GraphData.from_dgl(theirs, directed=False).num_edges == edges.num_edges


def test_types_come_from_a_homogeneous_graph_of_dgl():
    dgl = import_dgl()
    heterogeneous = dgl.heterograph(
        {("author", "writes", "paper"): ([0, 1], [0, 2]), ("paper", "cites", "paper"): ([0, 1, 1], [1, 0, 2])}
    )
    graph = GraphData.from_dgl(dgl.to_homogeneous(heterogeneous))
    assert (graph.num_nodes, graph.node_types.tolist()) == (5, [0, 0, 1, 1, 1])
    assert graph.edges.tolist() == [[0, 2], [1, 4], [2, 3], [3, 2], [3, 4]]
    assert graph.edge_types.tolist() == [0, 0, 1, 1, 1]
    one_type = GraphData.from_dgl(dgl.to_homogeneous(dgl.heterograph({("v", "e", "v"): ([0], [1])})))
    assert one_type.node_types is None and one_type.edge_types is None


def test_one_number_per_edge_is_a_weight_for_pyg_and_opposite_arcs_are_one_edge():
    data = pyg.Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=4)
    halved = as_graph_data(data, directed=False)
    assert halved.edges.tolist() == [[0, 1], [1, 2]] and halved.num_nodes == 4
    data.edge_attr = torch.tensor([1.0, 2.0, 3.0, 4.0])
    graph = as_graph_data(data)
    assert graph.edge_weight.tolist() == [1, 2, 3, 4] and graph.edge_feats is None
    data.edge_attr = torch.ones(4, 2)
    assert as_graph_data(data).num_edge_feats == 2


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (pyg.HeteroData(), "has no relation: no edges to read"),
        (pyg.Data(x=torch.ones(2, 1)), "no edge_index"),
        (pyg.Data(edge_index=torch.zeros(3, 4).long(), num_nodes=5), r"edge_index has shape \[3, 4\]: expected \[2, E"),
    ],
)
def test_a_graph_of_pyg_without_edges_or_with_wrong_ones_is_one_line(data, says):
    with pytest.raises(InputError, match=says):
        as_graph_data(data)


def test_columns_of_edges_are_carried_where_both_arcs_of_an_edge_have_the_same():
    both = import_dgl().graph(([0, 1, 1, 2], [1, 0, 2, 1]))
    both.edata["weight"] = torch.tensor([0.1 + 0.2, 0.3, 2, 2], dtype=torch.float64)  # 0.30000000000000004 and 0.3
    graph = GraphData.from_dgl(both, directed=False)
    assert graph.edges.tolist() == [[0, 1], [1, 2]] and graph.edge_weight.tolist() == [np.float32(0.3), 2]
    both.edata["weight"][3] = 2.1
    with pytest.raises(InputError, match="the weights are not symmetric: the arcs 1 -> 2 and back differ"):
        GraphData.from_dgl(both, directed=False)


def test_graphs_of_a_batch_keep_their_ids():
    dgl = import_dgl()
    one = pyg.Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([1]))
    with pytest.warns(GraphWarning, match=r"left out: y \(one row for each of 3 graphs, not per vertex\)$"):
        batch = GraphData.from_pyg(pyg.Batch.from_data_list([one] * 3))
    assert batch.graph_ids.tolist() == [0, 0, 1, 1, 2, 2] and batch.labels is None
    assert GraphData.from_dgl(dgl.batch([dgl.graph(([0], [1]))] * 2)).graph_ids.tolist() == [0, 0, 1, 1]
