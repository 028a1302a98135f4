"""What cannot run distributed is one line that names what can."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.interop.table import PYG

pytest.importorskip("torch_geometric")
from torch_geometric import nn as gnn
from torch_geometric.nn import global_add_pool

WIDTH = 8


def sage(aggr):
    return gnn.SAGEConv(WIDTH, 4, aggr=aggr).double()


def two_loops(edge_index):
    add = gnn.conv.gcn_conv.add_self_loops_fn
    return add(add(edge_index)[0])[0]


USES = {
    "SAGEConv lstm": (
        lambda graph: sage("lstm")(graph.x, graph),
        "LSTMAggregation .*cannot run distributed.* aggregate with sum, mean, max",
    ),
    "SAGEConv median": (lambda graph: sage("median")(graph.x, graph), "Aggregation .*cannot run distributed"),
    "SAGEConv mul": (lambda graph: sage("mul")(graph.x, graph), "MulAggregation .*cannot run distributed"),
    "types of a graph of one type": (
        lambda graph: graph.x_dict,
        "graph.x_dict cannot run distributed: this graph has one vertex set: .* RGCNConv",
    ),
    "adj_t": (lambda graph: graph.adj_t, "graph.adj_t cannot .* give layers the graph or graph.edge_index"),
    "list of arcs": (lambda graph: graph.edge_index.tolist(), "torch's tolist on edge_index.* cannot run distributed"),
    "more arcs": (
        lambda graph: torch.cat([graph.edge_index, torch.tensor([[0], [1]])], dim=1),
        "arcs cannot be added .* before the graph is cut",
    ),
    "two loops": (
        lambda graph: gnn.GATConv(WIDTH, 2, add_self_loops=False).double()(graph.x, two_loops(graph.edge_index)),
        "with two self-loops of each vertex",
    ),
    "rows of all vertices": (
        lambda graph: gnn.GCNConv(WIDTH, 4).double()(torch.ones(60, WIDTH).double(), graph),
        r"60 rows for a part of \d+ owned vertices: give one row per vertex",
    ),
    "rows of all vertices, any layer": (
        lambda graph: gnn.EdgeConv(torch.nn.Linear(2 * WIDTH, 4)).double()(torch.ones(60, WIDTH).double(), graph),
        r"60 rows for a part of \d+ owned vertices: give one row per vertex",
    ),
    "edge_index of one process": (
        lambda graph: gnn.GCNConv(WIDTH, 4).double()(graph.x, random_graph(2).to_pyg().edge_index),
        "give the layer the DistGraph, or its graph.edge_index, instead of edge_index",
    ),
    "global_mean_pool": (
        lambda graph: gnn.global_mean_pool(graph.x, None),
        "a pool over all vertices .* distgnn.ops.all_sum",
    ),
    "a pool that the script imported by its name": (
        lambda graph: global_add_pool(graph.x, None),
        "a pool over all vertices .* distgnn.ops.all_sum",
    ),
    "a pool by graph": (
        lambda graph: global_add_pool(graph.x, torch.zeros(graph.num_owned, dtype=torch.long)),
        "a pool by graph has one rank's rows only: .* distgnn.ops.readout",
    ),
    "an aggregation as a pool": (
        lambda graph: gnn.MeanAggregation()(graph.x, torch.zeros(graph.num_owned, dtype=torch.long)),
        "a pool by graph has one rank's rows only: .* distgnn.ops.readout",
    ),
}


@pytest.mark.mpi(2)
@pytest.mark.parametrize("name", USES)
def test_it_is_one_line_that_names_the_alternative(comm, name):
    graph = dist_graph(random_graph(2), comm)
    use, message = USES[name]
    with pytest.raises(ValueError, match=message) as caught:
        use(graph)
    assert "\n" not in str(caught.value)


def test_every_refusal_of_the_table_is_among_them():
    assert {layer.name for layer in PYG if layer.how == "refused"} <= USES.keys()


@pytest.mark.mpi(2)
def test_a_graph_that_is_gone_refuses_nothing(comm):
    graph = dist_graph(random_graph(2, num_nodes=83), comm)  # as no other test, whose graph may still be held
    num_owned, graph.itself = graph.num_owned, graph  # such a ring of references only ends with the garbage
    rows, index = torch.ones(num_owned, 1), torch.zeros(num_owned, dtype=torch.long)
    with pytest.raises(ValueError, match="readout"):
        global_add_pool(rows, index)
    del graph
    assert global_add_pool(rows, index).item() == num_owned
