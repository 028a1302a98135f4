"""What of PyG cannot run distributed is one line that names what can."""

import re

import pytest
import torch
from cut_graphs import dist_graph, random_graph
from pyg_layers import BelowTorch

from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows
from distgnn.interop.pyg.refused import BEFORE_THE_CUT, TRANSFORMS, UTILS
from distgnn.interop.table import PYG
from distgnn.nn import distribute

pytest.importorskip("torch_geometric")
from torch_geometric import nn as gnn
from torch_geometric import transforms, utils
from torch_geometric.nn import global_add_pool

WIDTH = 8


def sage(aggr):
    return gnn.SAGEConv(WIDTH, 4, aggr=aggr).double()


USES = {
    "SAGEConv lstm": (
        lambda graph: sage("lstm")(graph.x, graph),
        "LSTMAggregation .*cannot run distributed.* aggregate with sum, mean, max",
    ),
    "SAGEConv median": (
        lambda graph: sage("median")(graph.x, graph),
        "cumsum .*cannot run distributed.* take sum, mean",
    ),
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
    "rows of other vertices": (
        lambda graph: gnn.GCNConv(WIDTH, 4).double()(torch.ones(59, WIDTH).double(), graph),
        "59 rows for 60 vertices of all ranks: give one row for each",
    ),
    "rows of other vertices, any layer": (
        lambda graph: gnn.EdgeConv(torch.nn.Linear(2 * WIDTH, 4)).double()(torch.ones(59, WIDTH).double(), graph),
        "59 rows for 60 vertices of all ranks: give one row for each",
    ),
    "a message below torch's functions": (
        lambda graph: BelowTorch()(graph.x.clone().requires_grad_(), graph, torch.ones(graph.num_edges).double()),
        "gradient would be lost",
    ),
}
WITH_PLAIN_TENSORS = {
    "a layer": (
        lambda graph: gnn.GCNConv(WIDTH, 4).double()(graph.x, graph),
        "graph.edge_index cannot run distributed: .* without plain_tensors=True",
    ),
    "a model": (
        lambda graph: distribute(torch.nn.Sequential(gnn.GraphNorm(WIDTH)), graph),
        "modules of PyG cannot run .* without plain_tensors=True",
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
@pytest.mark.parametrize("uses", [USES, WITH_PLAIN_TENSORS], ids=["rows", "plain"])
def test_it_is_one_line_that_names_the_alternative(comm, uses):
    graph = dist_graph(random_graph(2), comm)
    graph = with_rows(graph) if uses is USES else graph
    for use, message in uses.values():
        with pytest.raises(ValueError, match=message) as caught:
            use(graph)
        assert "\n" not in str(caught.value)


def test_every_refusal_of_the_table_is_among_them():
    assert {layer.name for layer in PYG if layer.how == "refused"} <= USES.keys() | WITH_PLAIN_TENSORS.keys()


@pytest.mark.mpi(2)
def test_what_changes_arcs_is_refused_by_name(comm):
    ours = with_rows(dist_graph(random_graph(3), comm))
    edge_index = ours.edge_index
    for name in ("ToUndirected", "ToSparseTensor", "AddSelfLoops", "RandomLinkSplit", "LocalDegreeProfile"):
        advice = re.escape(TRANSFORMS.get(name, BEFORE_THE_CUT))
        with pytest.raises(InputError, match=f"T.{name} cannot run .*{advice}"):
            getattr(transforms, name)()(ours)
    calls = {
        **{name: (edge_index,) for name in ("negative_sampling", "to_undirected", "to_dense_adj", "assortativity")},
        **{"subgraph": (torch.tensor([1]), edge_index), "k_hop_subgraph": (3, 2, edge_index)},
        **{"to_networkx": (ours,), "is_undirected": (edge_index,), "dropout_node": (edge_index,)},
    }
    for name, given in calls.items():
        with pytest.raises(InputError, match=f"PyG's {name} cannot run .*{re.escape(UTILS[name])}"):
            getattr(utils, name)(*given)
    with pytest.raises(InputError, match=r"homophily.* cannot run on the edge_index of a DistGraph"):
        utils.homophily(edge_index, ours.y, method="edge_insensitive")
