"""Every layer of `dgl.nn.pytorch`, and DGL's message passing by hand."""

import torch
from layer_cases import Function, add_layer
from torch import nn
from worlds import EDGE_WIDTH, RELATIONS, WIDTH

from distgnn.system.other_libraries import import_dgl

dgl = import_dgl()
dgn = dgl.nn
fn = dgl.function
OUT = 6
FREE = {"allow_zero_in_degree": True}


def plain(layer, s, x):
    return layer(s.g, x)


def weighted(layer, s, x):
    return layer(s.g, x, edge_weight=s.g.edata["weight"])


def with_feats(layer, s, x):
    return layer(s.g, x, s.g.edata["feat"])


def with_types(layer, s, x):
    return layer(s.g, x, s.g.edata["etype"])


def alone(layer, s, x):
    return layer(x)


def linear(width=WIDTH, out=OUT):
    return nn.Linear(width, out)


def _project():
    """GINEConv on edge features of the width of the rows."""
    conv = dgn.GINEConv(linear(), learn_eps=True)
    return Function(lambda project, conv, g, x, e: conv(g, x, project(e)), linear(EDGE_WIDTH, WIDTH), conv)


def _jump(mode):
    def run(first, second, jump, g, x):
        hidden = first(g, x).relu()
        return jump([hidden, second(g, hidden)])

    convs = dgn.SAGEConv(WIDTH, 8, "mean"), dgn.SAGEConv(8, 8, "mean")
    return Function(run, *convs, dgn.JumpingKnowledge(mode, 8, 2))


def _weight_norm(norm):
    conv = dgn.GraphConv(WIDTH, OUT, norm="none", **FREE)
    return Function(lambda norm, conv, g, x, w: conv(g, x, edge_weight=norm(g, w)), dgn.EdgeWeightNorm(norm), conv)


def _messages(run):
    """A layer that a user wrote of `update_all` and `apply_edges`."""

    def scoped(lin, g, x):
        with g.local_scope():
            return run(g, lin(x))

    return Function(scoped, linear())


def _copy_sum(g, h):
    g.ndata["h"] = h
    g.update_all(fn.copy_u("h", "m"), fn.sum("m", "o"))
    return g.ndata["o"]


def _weighted_mean(g, h):
    g.ndata["h"] = h
    g.update_all(fn.u_mul_e("h", "weight", "m"), fn.mean("m", "o"))
    return g.ndata["o"]


def _largest(g, h):
    g.srcdata["h"] = h
    g.update_all(fn.copy_u("h", "m"), fn.max("m", "o"))
    return g.dstdata["o"]


def _softmax(g, h):
    g.ndata["h"] = h
    g.apply_edges(fn.u_dot_v("h", "h", "score"))
    g.edata["a"] = dgn.functional.edge_softmax(g, g.edata["score"])
    g.update_all(fn.u_mul_e("h", "a", "m"), fn.sum("m", "o"))
    return g.ndata["o"]


def _functions(g, h):
    g.ndata["h"] = h
    g.update_all(
        lambda edges: {"m": torch.tanh(edges.src["h"] - edges.dst["h"]) * edges.data["weight"][:, None]},
        fn.sum("m", "o"),
    )
    return g.ndata["o"]


def _degrees(g, h):
    g.ndata["h"] = h * g.out_degrees().clamp(min=1).pow(-0.5).unsqueeze(1).to(h.dtype)
    g.update_all(fn.copy_u("h", "m"), fn.sum("m", "o"))
    return g.ndata["o"] * g.in_degrees().clamp(min=1).pow(-0.5).unsqueeze(1).to(h.dtype)


def _reducer(g, h):
    g.ndata["h"] = h
    g.update_all(fn.copy_u("h", "m"), lambda nodes: {"o": nodes.mailbox["m"].sum(1)})
    return g.ndata["o"]


def _edges_applied(g, h):
    g.ndata["h"] = h
    g.apply_edges(lambda edges: {"w": (edges.src["h"] * edges.dst["h"]).sum(-1, keepdim=True).sigmoid()})
    g.update_all(fn.u_mul_e("h", "w", "m"), fn.sum("m", "o"))
    return g.ndata["o"]


def _difference(g, h):
    g.ndata["h"] = h
    g.apply_edges(fn.u_sub_v("h", "h", "d"))
    g.update_all(fn.copy_e("d", "m"), fn.mean("m", "o"))
    return g.ndata["o"]


def _degree_rows(neighbours):
    return Function(lambda layer, x: layer(x.detach()).in_degrees().double().unsqueeze(1), neighbours)


def _read(function):
    def scoped(g, x):
        with g.local_scope():
            g.ndata["h"] = x
            return function(g, "h")

    return Function(scoped)


def with_weight(layer, s, x):
    return layer(s.g, x, s.g.edata["weight"])


def of_pairs(layer, s, x):
    return layer(x[s.ids.pos[0]], x[s.ids.pos[1]])


def of_triples(layer, s, x):
    return layer(x[s.ids.pos[0]], x[s.ids.pos[1]], torch.arange(40) % RELATIONS).unsqueeze(1)


LAYERS = {
    "GraphConv": (lambda: dgn.GraphConv(WIDTH, OUT, **FREE), plain),
    "GraphConv right": (lambda: dgn.GraphConv(WIDTH, OUT, "right", activation=torch.relu, **FREE), plain),
    "GraphConv weighted": (lambda: dgn.GraphConv(WIDTH, OUT, "none", **FREE), weighted),
    "EdgeWeightNorm": (lambda: _weight_norm("both"), with_weight),
    "EdgeWeightNorm right": (lambda: _weight_norm("right"), with_weight),
    "RelGraphConv": (lambda: dgn.RelGraphConv(WIDTH, OUT, RELATIONS), with_types),
    "RelGraphConv basis": (lambda: dgn.RelGraphConv(WIDTH, OUT, RELATIONS, "basis", 2, layer_norm=True), with_types),
    "RelGraphConv bdd": (lambda: dgn.RelGraphConv(WIDTH, OUT, RELATIONS, "bdd", 2), with_types),
    "GATConv": (lambda: dgn.GATConv(WIDTH, 3, 2, **FREE), plain),
    "GATConv residual": (lambda: dgn.GATConv(WIDTH, 3, 2, residual=True, activation=torch.relu, **FREE), plain),
    "GATConv attention": (lambda: dgn.GATConv(WIDTH, 3, 2, **FREE), lambda m, s, x: m(s.g, x, get_attention=True)[0]),
    "GATv2Conv": (lambda: dgn.GATv2Conv(WIDTH, 3, 2, residual=True, **FREE), plain),
    "EdgeGATConv": (lambda: dgn.EdgeGATConv(WIDTH, EDGE_WIDTH, 3, 2, **FREE), with_feats),
    "TAGConv": (lambda: dgn.TAGConv(WIDTH, OUT), plain),
    "SAGEConv mean": (lambda: dgn.SAGEConv(WIDTH, OUT, "mean"), plain),
    "SAGEConv gcn": (lambda: dgn.SAGEConv(WIDTH, OUT, "gcn"), plain),
    "SAGEConv pool": (lambda: dgn.SAGEConv(WIDTH, OUT, "pool"), plain),
    "SAGEConv lstm": (lambda: dgn.SAGEConv(WIDTH, OUT, "lstm"), plain),
    "SGConv": (lambda: dgn.SGConv(WIDTH, OUT, 2, **FREE), plain),
    "SGConv cached": (lambda: dgn.SGConv(WIDTH, OUT, 2, cached=True, **FREE), lambda m, s, x: m(s.g, x.detach())),
    "SGConv norm": (
        lambda: dgn.SGConv(WIDTH, OUT, 2, norm=lambda rows: (rows - rows.mean(0)) / rows.std(0), **FREE),
        plain,
    ),
    "APPNPConv": (lambda: dgn.APPNPConv(3, 0.1), plain),
    "GINConv": (lambda: dgn.GINConv(linear(), "sum", learn_eps=True), plain),
    "GINConv max": (lambda: dgn.GINConv(linear(), "max"), plain),
    "GINEConv": (_project, with_feats),
    "GatedGraphConv": (lambda: dgn.GatedGraphConv(WIDTH, WIDTH, 2, RELATIONS), with_types),
    "GMMConv": (lambda: dgn.GMMConv(WIDTH, OUT, EDGE_WIDTH, 3, allow_zero_in_degree=True), with_feats),
    "ChebConv": (lambda: dgn.ChebConv(WIDTH, OUT, 3), lambda m, s, x: m(s.g, x, [1.7])),
    "ChebConv own lambda": (lambda: dgn.ChebConv(WIDTH, OUT, 3), plain),
    "AGNNConv": (lambda: dgn.AGNNConv(**FREE), plain),
    "NNConv": (lambda: dgn.NNConv(WIDTH, OUT, linear(EDGE_WIDTH, WIDTH * OUT), "mean"), with_feats),
    "AtomicConv": (
        lambda: dgn.AtomicConv(torch.ones(3), torch.ones(3) * 2, torch.ones(3), torch.tensor([1.0, 2.0])),
        lambda m, s, x: m(s.g, x[:, :1], s.g.edata["weight"].unsqueeze(1)),
    ),
    "CFConv": (lambda: dgn.CFConv(WIDTH, EDGE_WIDTH, 8, OUT), with_feats),
    "DotGatConv": (lambda: dgn.DotGatConv(WIDTH, 3, 2, **FREE), plain),
    "TWIRLSConv": (lambda: dgn.TWIRLSConv(WIDTH, OUT, 8, prop_step=2), plain),
    "TWIRLSUnfoldingAndAttention": (lambda: dgn.TWIRLSUnfoldingAndAttention(8, 1.0, 1.0, prop_step=2), plain),
    "GCN2Conv": (lambda: dgn.GCN2Conv(WIDTH, 1, **FREE), lambda m, s, x: m(s.g, x, x.tanh())),
    "HGTConv": (
        lambda: dgn.HGTConv(WIDTH, 3, 2, 2, RELATIONS, 0.0),
        lambda m, s, x: m(s.g, x, s.g.ndata["ntype"], s.g.edata["etype"]),
    ),
    "GroupRevRes": (lambda: dgn.GroupRevRes(dgn.GraphConv(4, 4, **FREE), 2), lambda m, s, x: m(s.g, x * 1)),
    "EGNNConv": (
        lambda: dgn.EGNNConv(WIDTH, 8, OUT, EDGE_WIDTH),
        lambda m, s, x: m(s.g, x, x[:, :3], s.g.edata["feat"])[0],
    ),
    "PNAConv": (lambda: dgn.PNAConv(WIDTH, OUT, ["mean", "max", "sum"], ["identity", "amplification"], 2.5), plain),
    "DGNConv": (
        lambda: dgn.DGNConv(WIDTH, OUT, ["dir1-av", "sum"], ["identity"], 2.5),
        lambda m, s, x: m(s.g, x, eig_vec=x[:, :3]),
    ),
    "EdgeConv": (lambda: dgn.EdgeConv(WIDTH, OUT, allow_zero_in_degree=True), plain),
    "EdgeConv norm": (lambda: dgn.EdgeConv(WIDTH, OUT, batch_norm=True, allow_zero_in_degree=True), plain),
    "JumpingKnowledge cat": (lambda: _jump("cat"), plain),
    "JumpingKnowledge max": (lambda: _jump("max"), plain),
    "JumpingKnowledge lstm": (lambda: _jump("lstm"), plain),
    "Sequential": (lambda: dgn.Sequential(dgn.GraphConv(WIDTH, 8, **FREE), dgn.SAGEConv(8, OUT, "mean")), plain),
    "LabelPropagation": (
        lambda: dgn.LabelPropagation(3, 0.8),
        lambda m, s, x: m(s.g, s.g.ndata["label"], s.g.ndata["train_mask"]),
    ),
    "TypedLinear": (lambda: dgn.TypedLinear(WIDTH, OUT, 2), lambda m, s, x: m(x, s.g.ndata["ntype"])),
    "EdgePredictor": (lambda: dgn.EdgePredictor("dot"), of_pairs),
    "EdgePredictor cos": (lambda: dgn.EdgePredictor("cos", WIDTH, 3), of_pairs),
    "TransE": (lambda: dgn.TransE(RELATIONS, WIDTH), of_triples),
    "TransR": (lambda: dgn.TransR(RELATIONS, 3, WIDTH), of_triples),
    "own copy and sum": (lambda: _messages(_copy_sum), plain),
    "own weighted mean": (lambda: _messages(_weighted_mean), plain),
    "own maximum": (lambda: _messages(_largest), plain),
    "own softmax": (lambda: _messages(_softmax), plain),
    "own functions": (lambda: _messages(_functions), plain),
    "own degrees": (lambda: _messages(_degrees), plain),
    "own reducer": (lambda: _messages(_reducer), plain),
    "own edges": (lambda: _messages(_edges_applied), plain),
    "own difference": (lambda: _messages(_difference), plain),
}
READOUTS = {
    "SumPooling": (lambda: dgn.SumPooling(), plain),
    "AvgPooling": (lambda: dgn.AvgPooling(), plain),
    "MaxPooling": (lambda: dgn.MaxPooling(), plain),
    "SortPooling": (lambda: dgn.SortPooling(3), plain),
    "WeightAndSum": (lambda: dgn.WeightAndSum(WIDTH), plain),
    "GlobalAttentionPooling": (lambda: dgn.GlobalAttentionPooling(linear(WIDTH, 1)), plain),
    "Set2Set": (lambda: dgn.Set2Set(WIDTH, 2, 1), plain),
    "SetTransformerEncoder": (lambda: dgn.SetTransformerEncoder(WIDTH, 2, 4, 8), plain),
    "SetTransformerDecoder": (lambda: dgn.SetTransformerDecoder(WIDTH, 2, 4, 8, 1, 1), plain),
    "KNNGraph": (lambda: _degree_rows(dgn.KNNGraph(3)), alone),
    "RadiusGraph": (lambda: _degree_rows(dgn.RadiusGraph(1.0)), alone),
    "mean_nodes": (lambda: _read(dgl.mean_nodes), plain),
    "sum_nodes": (lambda: _read(dgl.sum_nodes), plain),
    "softmax_nodes": (lambda: _read(dgl.softmax_nodes), plain),
}


for name, (make, call) in LAYERS.items():
    add_layer("dgl", name, make, call)
for name, (make, call) in READOUTS.items():
    add_layer("dgl", name, make, call, "whole, no gradient")
