"""Models of PyG for graphs with types, by name: (model of a whole graph, its rows by type from a model and a graph)."""

import warnings

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch_geometric import nn as pyg
    from torch_geometric.nn import HeteroConv, HeteroDictLinear, Linear, MessagePassing, SAGEConv

CITES = ("paper", "cites", "paper")


class Own(MessagePassing):
    """Messages of both ends and of arcs, from one type to another."""

    def __init__(self):
        super().__init__(aggr="mean")
        self.source, self.target, self.arc = Linear(-1, 8), Linear(-1, 8), Linear(-1, 8)

    def forward(self, x, edge_index, edge_attr):
        return self.propagate(edge_index, x=(self.source(x[0]), self.target(x[1])), edge_attr=edge_attr)

    def message(self, x_i, x_j, edge_attr):
        return torch.tanh(x_i - x_j) * self.arc(edge_attr)


class OneType(torch.nn.Module):
    """A model of one type, that `to_hetero` duplicates."""

    def __init__(self, conv=lambda: SAGEConv((-1, -1), 8)):
        super().__init__()
        self.first, self.second, self.norm = conv(), conv(), torch.nn.LayerNorm(8)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


class OneWidth(torch.nn.Module):
    """A Linear for each type in front of a model."""

    def __init__(self, widths, body):
        super().__init__()
        self.lin, self.body = HeteroDictLinear(widths, 8), body

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
    return lambda: layer((-1, -1), 4, heads=2, **options)


NO_LOOPS = {"add_self_loops": False}
CASES = {
    **{f"SAGEConv {aggr}": by_relation(lambda: SAGEConv((-1, -1), 8), aggr=aggr) for aggr in ("sum", "max", "cat")},
    "SAGEConv by max": by_relation(lambda: SAGEConv((-1, -1), 8, aggr="max"), aggr="mean"),
    "SAGEConv project": by_relation(lambda: SAGEConv((8, 8), 8, project=True, normalize=True), aggr="min"),
    "SAGEConv, neighbours alone": by_relation(lambda: SAGEConv((-1, -1), 4, root_weight=False, bias=False)),
    "GATConv": by_relation(attention(pyg.GATConv, **NO_LOOPS)),
    "GATConv edge features": by_relation(attention(pyg.GATConv, edge_dim=4, **NO_LOOPS), with_attr),
    "GATv2Conv": by_relation(attention(pyg.GATv2Conv, **NO_LOOPS)),
    "GATv2Conv edge features": by_relation(attention(pyg.GATv2Conv, edge_dim=4, **NO_LOOPS), with_attr),
    "TransformerConv": by_relation(attention(pyg.TransformerConv)),
    "GraphConv": by_relation(
        lambda: pyg.GraphConv((-1, -1), 8),
        lambda model, data: model(data.x_dict, data.edge_index_dict, data.edge_weight_dict),
    ),
    "GINConv": by_relation(lambda: pyg.GINConv(torch.nn.Linear(8, 8))),
    "own layer": by_relation(Own, one_by_one),
    "to_hetero": dicts(lambda whole: pyg.to_hetero(OneType(), metadata(whole))),
    "to_hetero_with_bases": dicts(
        lambda whole: OneWidth(
            widths(whole),
            pyg.to_hetero_with_bases(OneType(lambda: SAGEConv(8, 8)), metadata(whole), 3, in_channels={"x": 8}),
        )
    ),
    "HGTConv": dicts(lambda whole: pyg.HGTConv(widths(whole), 8, metadata(whole), heads=2)),
    "HGTConv skip": dicts(lambda whole: OneWidth(widths(whole), pyg.HGTConv(8, 8, metadata(whole), heads=2))),
    "HANConv": dicts(lambda whole: pyg.HANConv(widths(whole), 8, metadata(whole), heads=2)),
    "RGCNConv": on_one_vertex_set(lambda whole: pyg.RGCNConv(8, 8, 7, num_bases=2), "edge_index", "edge_type"),
    "FastRGCNConv": on_one_vertex_set(lambda whole: pyg.FastRGCNConv(8, 8, 7), "edge_index", "edge_type"),
    "RGATConv": on_one_vertex_set(lambda whole: pyg.RGATConv(8, 8, 7, heads=2), "edge_index", "edge_type"),
    "HEATConv": on_one_vertex_set(
        lambda whole: pyg.HEATConv(8, 8, 4, 7, 3, 4, 5, heads=2), "edge_index", "node_type", "edge_type", "edge_attr"
    ),
    "HeteroLinear": on_one_vertex_set(lambda whole: pyg.HeteroLinear(8, 8, 4), "node_type"),
    "HeteroBatchNorm": on_one_vertex_set(lambda whole: pyg.HeteroBatchNorm(8, 4), "node_type"),
    "HeteroLayerNorm": on_one_vertex_set(lambda whole: pyg.HeteroLayerNorm(8, 4), "node_type"),
    "one type: GCNConv": of_cites(lambda: pyg.GCNConv(-1, 8), "edge_weight"),
    "one type: GATConv": of_cites(lambda: pyg.GATConv(-1, 4, heads=2)),
    "one type: PNAConv": of_cites(
        lambda: pyg.PNAConv(16, 4, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([3, 4, 8, 3, 1]))
    ),
}
ONE_WIDTH = ("SAGEConv project", "GINConv", "RGCNConv", "FastRGCNConv", "RGATConv", "HEATConv", "HeteroLinear")
ONE_WIDTH = (*ONE_WIDTH, "HeteroBatchNorm", "HeteroLayerNorm")


def graph_for(name, make, seed):
    """A random graph that a case can run on, of those that `make` makes of a seed."""
    return make(seed, same_width=name in ONE_WIDTH)
