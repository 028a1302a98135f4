"""Every layer of `dgl.nn.pytorch`, and DGL's message passing by hand."""

import torch
from layer_cases import add_layer
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


class _Project(nn.Module):
    """GINEConv on edge features of the width of the rows."""

    def __init__(self):
        super().__init__()
        self.project, self.conv = linear(EDGE_WIDTH, WIDTH), dgn.GINEConv(linear(), learn_eps=True)

    def forward(self, g, x, edges):
        return self.conv(g, x, self.project(edges))


class _Jump(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.first, self.second = dgn.SAGEConv(WIDTH, 8, "mean"), dgn.SAGEConv(8, 8, "mean")
        self.jump = dgn.JumpingKnowledge(mode, 8, 2)

    def forward(self, g, x):
        hidden = self.first(g, x).relu()
        return self.jump([hidden, self.second(g, hidden)])


class _WeightNorm(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm, self.conv = dgn.EdgeWeightNorm(norm), dgn.GraphConv(WIDTH, OUT, norm="none", **FREE)

    def forward(self, g, x, edge_weight):
        return self.conv(g, x, edge_weight=self.norm(g, edge_weight))


class _Messages(nn.Module):
    """A layer that a user wrote of `update_all` and `apply_edges`."""

    def __init__(self, run):
        super().__init__()
        self.lin, self.run = linear(), run

    def forward(self, g, x):
        with g.local_scope():
            return self.run(g, self.lin(x))


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


LAYERS = {
    "GraphConv": (lambda: dgn.GraphConv(WIDTH, OUT, **FREE), plain),
    "GraphConv right": (lambda: dgn.GraphConv(WIDTH, OUT, "right", activation=torch.relu, **FREE), plain),
    "GraphConv weighted": (lambda: dgn.GraphConv(WIDTH, OUT, "none", **FREE), weighted),
    "EdgeWeightNorm": (lambda: _WeightNorm("both"), lambda m, s, x: m(s.g, x, s.g.edata["weight"])),
    "EdgeWeightNorm right": (lambda: _WeightNorm("right"), lambda m, s, x: m(s.g, x, s.g.edata["weight"])),
    "RelGraphConv": (lambda: dgn.RelGraphConv(WIDTH, OUT, RELATIONS), with_types),
    "RelGraphConv basis": (lambda: dgn.RelGraphConv(WIDTH, OUT, RELATIONS, "basis", 2, layer_norm=True), with_types),
    "RelGraphConv bdd": (lambda: dgn.RelGraphConv(WIDTH, OUT, RELATIONS, "bdd", 2), with_types),
    "GATConv": (lambda: dgn.GATConv(WIDTH, 3, 2, **FREE), plain),
    "GATConv residual": (lambda: dgn.GATConv(WIDTH, 3, 2, residual=True, activation=torch.relu, **FREE), plain),
    "GATConv attention": (lambda: dgn.GATConv(WIDTH, 3, 2, **FREE), lambda m, s, x: m(s.g, x, get_attention=True)[0]),
    "GATv2Conv": (lambda: dgn.GATv2Conv(WIDTH, 3, 2, residual=True, **FREE), plain),
    "EdgeGATConv": (lambda: dgn.EdgeGATConv(WIDTH, EDGE_WIDTH, 3, 2, **FREE), with_feats),
    "EGATConv": (
        lambda: dgn.EGATConv(WIDTH, EDGE_WIDTH, 3, 4, 2),
        lambda m, s, x: m(s.g, x, s.g.edata["feat"])[0],
    ),
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
    "GINEConv": (_Project, with_feats),
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
    "PNAConv": (
        lambda: dgn.PNAConv(WIDTH, OUT, ["mean", "max", "sum"], ["identity", "amplification"], 2.5),
        plain,
    ),
    "DGNConv": (
        lambda: dgn.DGNConv(WIDTH, OUT, ["dir1-av", "sum"], ["identity"], 2.5),
        lambda m, s, x: m(s.g, x, eig_vec=x[:, :3]),
    ),
    "EdgeConv": (lambda: dgn.EdgeConv(WIDTH, OUT, allow_zero_in_degree=True), plain),
    "EdgeConv norm": (lambda: dgn.EdgeConv(WIDTH, OUT, batch_norm=True, allow_zero_in_degree=True), plain),
    "JumpingKnowledge cat": (lambda: _Jump("cat"), plain),
    "JumpingKnowledge max": (lambda: _Jump("max"), plain),
    "JumpingKnowledge lstm": (lambda: _Jump("lstm"), plain),
    "Sequential": (
        lambda: dgn.Sequential(dgn.GraphConv(WIDTH, 8, **FREE), dgn.SAGEConv(8, OUT, "mean")),
        plain,
    ),
    "LabelPropagation": (
        lambda: dgn.LabelPropagation(3, 0.8),
        lambda m, s, x: m(s.g, s.g.ndata["label"], s.g.ndata["train_mask"]),
    ),
    "TypedLinear": (lambda: dgn.TypedLinear(WIDTH, OUT, 2), lambda m, s, x: m(x, s.g.ndata["ntype"])),
    "DegreeEncoder": (lambda: dgn.DegreeEncoder(8, OUT), lambda m, s, x: m(s.g.in_degrees().unsqueeze(0)) * x.mean()),
    "EdgePredictor": (
        lambda: dgn.EdgePredictor("dot"),
        lambda m, s, x: m(x[s.ids.pos[0]], x[s.ids.pos[1]]),
    ),
    "EdgePredictor cos": (
        lambda: dgn.EdgePredictor("cos", WIDTH, 3),
        lambda m, s, x: m(x[s.ids.pos[0]], x[s.ids.pos[1]]),
    ),
    "TransE": (
        lambda: dgn.TransE(RELATIONS, WIDTH),
        lambda m, s, x: m(x[s.ids.pos[0]], x[s.ids.pos[1]], torch.arange(40) % RELATIONS).unsqueeze(1),
    ),
    "TransR": (
        lambda: dgn.TransR(RELATIONS, 3, WIDTH),
        lambda m, s, x: m(x[s.ids.pos[0]], x[s.ids.pos[1]], torch.arange(40) % RELATIONS).unsqueeze(1),
    ),
    "own copy and sum": (lambda: _Messages(_copy_sum), plain),
    "own weighted mean": (lambda: _Messages(_weighted_mean), plain),
    "own maximum": (lambda: _Messages(_largest), plain),
    "own softmax": (lambda: _Messages(_softmax), plain),
    "own functions": (lambda: _Messages(_functions), plain),
    "own degrees": (lambda: _Messages(_degrees), plain),
    "own reducer": (lambda: _Messages(_reducer), plain),
    "own edges": (lambda: _Messages(_edges_applied), plain),
    "own difference": (lambda: _Messages(_difference), plain),
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
    "KNNGraph": (lambda: _Wrap(dgn.KNNGraph(3)), alone),
    "RadiusGraph": (lambda: _Wrap(dgn.RadiusGraph(1.0)), alone),
    "mean_nodes": (lambda: _Read(dgl.mean_nodes), plain),
    "sum_nodes": (lambda: _Read(dgl.sum_nodes), plain),
    "softmax_nodes": (lambda: _Read(dgl.softmax_nodes), plain),
}


class _Wrap(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x.detach()).in_degrees().double().unsqueeze(1)


class _Read(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, g, x):
        with g.local_scope():
            g.ndata["h"] = x
            return self.function(g, "h")


for name, (make, call) in LAYERS.items():
    add_layer("dgl", name, make, call)
for name, (make, call) in READOUTS.items():
    add_layer("dgl", name, make, call, "whole, no gradient")
