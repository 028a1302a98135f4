"""Layers and models of PyG on the types and relations of P ranks equal plain PyG on the whole HeteroData.

Outputs by type, gradients of parameters, and the losses of 5 steps. Each rank works out the plain ones, too.
"""

import warnings

import pytest
import torch
from against_dgl import default_float64
from typed_parts import random_typed, same_steps, typed_graph

from distgnn import nn as dnn
from distgnn.errors import InputError

pytest.importorskip("torch_geometric")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch_geometric import nn as pyg
    from torch_geometric.nn import HeteroConv, HeteroDictLinear, Linear, MessagePassing, SAGEConv

CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")


class Own(MessagePassing):
    """Messages of both ends and of arcs, from one type to another."""

    def __init__(self):
        super().__init__(aggr="mean")
        self.source, self.target, self.arc = Linear(-1, 6), Linear(-1, 6), Linear(-1, 6)

    def forward(self, x, edge_index, edge_attr):
        return self.propagate(edge_index, x=(self.source(x[0]), self.target(x[1])), edge_attr=edge_attr)

    def message(self, x_i, x_j, edge_attr):
        return torch.tanh(x_i - x_j) * self.arc(edge_attr)


class OneType(torch.nn.Module):
    """A model of one type, that `to_hetero` duplicates."""

    def __init__(self, conv=lambda: SAGEConv((-1, -1), 6)):
        super().__init__()
        self.first, self.second, self.norm = conv(), conv(), torch.nn.LayerNorm(6)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


class OneWidth(torch.nn.Module):
    """A Linear for each type in front of a model."""

    def __init__(self, widths, body):
        super().__init__()
        self.lin, self.body = HeteroDictLinear(widths, 6), body

    def forward(self, x_dict, *columns):
        return self.body(self.lin(x_dict), *columns)


def by_relation(make, call=None, aggr="sum"):
    """(model, how it runs) of HeteroConv over layers that `make` makes for each relation."""
    call = call or (lambda model, data: model(data.x_dict, data.edge_index_dict))
    return lambda whole: HeteroConv({key: make() for key in whole.edges}, aggr), call


def with_attr(model, data):
    return model(data.x_dict, data.edge_index_dict, data.edge_attr_dict)


def one_by_one(model, data):
    """Own layers, relation by relation, also from a type to itself with rows for each end."""
    out = {}
    for key in data.edge_types:
        ends = data[key[0]].x, data[key[2]].x
        made = model.convs[key](ends, data[key].edge_index, data[key].edge_attr)
        out[key[2]] = out.get(key[2], 0) + made
    return out


def widths(whole):
    return {name: columns["feats"].shape[1] for name, columns in whole.columns.items()}


def metadata(whole):
    return list(whole.counts), list(whole.edges)


def dicts(make):
    return make, lambda model, data: model(data.x_dict, data.edge_index_dict)


def on_one_vertex_set(make, *columns):
    def call(model, data):
        whole = data.to_homogeneous()
        return {"all": model(whole.x, *(whole[name] for name in columns))}

    return make, call


def of_cites(make, *columns):
    return lambda whole: make(), lambda model, data: {
        "paper": model(data["paper"].x, *(data[CITES][name] for name in ("edge_index", *columns)))
    }


def attention(layer, **options):
    return lambda: layer((-1, -1), 3, heads=2, **options)


NO_LOOPS = {"add_self_loops": False}
CASES = {
    **{f"SAGEConv {aggr}": by_relation(lambda: SAGEConv((-1, -1), 6), aggr=aggr) for aggr in ("sum", "max", "cat")},
    "SAGEConv by max": by_relation(lambda: SAGEConv((-1, -1), 6, aggr="max"), aggr="mean"),
    "SAGEConv project": by_relation(lambda: SAGEConv((6, 6), 6, project=True, normalize=True), aggr="min"),
    "GATConv": by_relation(attention(pyg.GATConv, **NO_LOOPS)),
    "GATConv edge features": by_relation(attention(pyg.GATConv, edge_dim=4, **NO_LOOPS), with_attr),
    "GATv2Conv": by_relation(attention(pyg.GATv2Conv, **NO_LOOPS)),
    "GATv2Conv edge features": by_relation(attention(pyg.GATv2Conv, edge_dim=4, **NO_LOOPS), with_attr),
    "TransformerConv": by_relation(attention(pyg.TransformerConv)),
    "GraphConv": by_relation(
        lambda: pyg.GraphConv((-1, -1), 6),
        lambda model, data: model(data.x_dict, data.edge_index_dict, data.edge_weight_dict),
    ),
    "GINConv": by_relation(lambda: pyg.GINConv(torch.nn.Linear(6, 6))),
    "own layer": by_relation(Own, one_by_one),
    "to_hetero": dicts(lambda whole: pyg.to_hetero(OneType(), metadata(whole))),
    "to_hetero_with_bases": dicts(
        lambda whole: OneWidth(
            widths(whole),
            pyg.to_hetero_with_bases(OneType(lambda: SAGEConv(6, 6)), metadata(whole), 3, in_channels={"x": 6}),
        )
    ),
    "HGTConv": dicts(lambda whole: pyg.HGTConv(widths(whole), 6, metadata(whole), heads=2)),
    "HGTConv skip": dicts(lambda whole: OneWidth(widths(whole), pyg.HGTConv(6, 6, metadata(whole), heads=2))),
    "HANConv": dicts(lambda whole: pyg.HANConv(widths(whole), 6, metadata(whole), heads=2)),
    "RGCNConv": on_one_vertex_set(lambda whole: pyg.RGCNConv(6, 6, 7, num_bases=2), "edge_index", "edge_type"),
    "FastRGCNConv": on_one_vertex_set(lambda whole: pyg.FastRGCNConv(6, 6, 7), "edge_index", "edge_type"),
    "RGATConv": on_one_vertex_set(lambda whole: pyg.RGATConv(6, 6, 7, heads=2), "edge_index", "edge_type"),
    "HEATConv": on_one_vertex_set(
        lambda whole: pyg.HEATConv(6, 6, 4, 7, 3, 4, 5, heads=2), "edge_index", "node_type", "edge_type", "edge_attr"
    ),
    "HeteroLinear": on_one_vertex_set(lambda whole: pyg.HeteroLinear(6, 6, 4), "node_type"),
    "HeteroBatchNorm": on_one_vertex_set(lambda whole: pyg.HeteroBatchNorm(6, 4), "node_type"),
    "HeteroLayerNorm": on_one_vertex_set(lambda whole: pyg.HeteroLayerNorm(6, 4), "node_type"),
    "one type: GCNConv": of_cites(lambda: pyg.GCNConv(-1, 6), "edge_weight"),
    "one type: GATConv": of_cites(lambda: pyg.GATConv(-1, 3, heads=2)),
    "one type: PNAConv": of_cites(
        lambda: pyg.PNAConv(12, 4, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([3, 4, 6, 3, 1]))
    ),
}
ONE_WIDTH = ("SAGEConv project", "GINConv", "RGCNConv", "FastRGCNConv", "RGATConv", "HEATConv", "HeteroLinear")
ONE_WIDTH = (*ONE_WIDTH, "HeteroBatchNorm", "HeteroLayerNorm")


@pytest.mark.mpi(3)
@default_float64()
def test_every_layer_gives_what_plain_pyg_gives(comm):
    for number, name in enumerate(CASES):
        whole = random_typed(number, same_width=name in ONE_WIDTH)
        same_steps(name, CASES[name], whole, whole.to_pyg(), comm)


@pytest.mark.mpi(2)
@default_float64()
def test_columns_by_type_have_the_manners_of_heterodata(comm):
    whole = random_typed()
    data, graph = whole.to_pyg(), typed_graph(whole, comm)
    assert graph.metadata() == data.metadata() and graph.num_nodes_dict == data.num_nodes_dict
    assert (graph.rank, graph.num_ranks) == (comm.rank, comm.size)
    assert graph.num_edges == data.num_edges and graph.num_features == data.num_features
    for name in ("x", "y", "train_mask", "edge_attr", "edge_weight"):
        ours, theirs = graph.collect(name), data.collect(name)
        assert ours.keys() == theirs.keys() and all(torch.equal(ours[key].whole(), theirs[key]) for key in theirs)
    paper = graph["paper"]
    paper.score = paper.x.mean(1) + torch.arange(23.0)
    graph.x_dict = {name: rows * 2 for name, rows in graph.x_dict.items()}
    assert torch.equal(paper.score.whole(), data["paper"].x.mean(1) + torch.arange(23.0))
    assert torch.equal(graph["author"].x.whole(), data["author"].x * 2)
    graph["cites"].kind = torch.arange(50)
    assert torch.equal(graph[CITES].kind.whole(), torch.arange(50)) and graph["author", "paper"] is graph[WRITES]
    torch.testing.assert_close(
        float(paper.x[paper.train_mask].std()), float(2 * data["paper"].x[data["paper"].train_mask].std())
    )
    torch.manual_seed(1)
    dropped = torch.nn.functional.dropout(paper.x, 0.5).whole()
    torch.manual_seed(1)
    alone = torch.nn.functional.dropout(typed_graph(whole, comm, seed=5)["paper"].x * 2, 0.5).whole()
    assert torch.equal(dropped, alone)  # drawn by type and id, wherever rows are
    torch.manual_seed(1)
    table = dnn.NodeEmbedding(graph["venue"], 4)
    torch.manual_seed(1)
    assert torch.equal(table.weight.whole(), torch.nn.Embedding(17, 4).weight)


@pytest.mark.mpi(2)
@default_float64()
def test_what_would_mix_types_is_refused_in_one_line(comm):
    graph = typed_graph(random_typed(), comm)
    x, writes = graph.x_dict, graph[WRITES].edge_index
    near = graph["near"].edge_index  # of as many venues as authors
    refused = {
        "rows of two types do not go together": lambda: x["author"].sum(1) + x["venue"].sum(1),
        "rows of two types": lambda: SAGEConv((7, 3), 4)((x["author"], x["venue"]), near),
        "do not go together": lambda: x["author"].sum(1) + x["paper"].sum(1),
        "add_self_loops=False": lambda: pyg.GATConv((7, 12), 4)((x["author"], x["paper"]), writes),
        "counts arcs at both ends": lambda: pyg.GCNConv(7, 4)(x["author"], near),
        "to which an offset was added": lambda: x["author"][(writes + torch.tensor([[3], [4]]))[0]],
        "offsets of their vertices": lambda: torch.cat([near, writes + torch.tensor([[3], [4]])], 1),
        "before it is cut": lambda: graph.__setitem__("new", {}),
        "there is no 'reads'": lambda: graph["reads"],
    }
    for says, run in refused.items():
        with pytest.raises((InputError, KeyError), match=says):
            run()
    with pytest.raises(InputError, match="algorithm='cd-0'"):
        typed_graph(random_typed(), comm, algorithm="cd-2")
