"""The modules of DGL that are tested, by name: how each is made and called."""

import torch
from against_dgl import default_float64

from distgnn.system.other_libraries import import_dgl

gnn = import_dgl().nn
WIDTH = 8
FREE = {"allow_zero_in_degree": True}


def plain(layer, graph, inputs):
    return layer(graph, inputs.feats)


def weighted(layer, graph, inputs):
    return layer(graph, inputs.feats, edge_weight=inputs.edge_weight)


in_float64 = default_float64()(plain)  # for weights of the default dtype, which DGL then refuses to multiply


def with_column_weights(layer, graph, inputs):
    return layer(graph, inputs.feats, edge_weight=inputs.edge_weight[:, None])


def with_edge_feats(layer, graph, inputs):
    return layer(graph, inputs.feats, inputs.edge_feats)


def with_initial(layer, graph, inputs):
    return layer(graph, inputs.feats.relu(), inputs.feats)


def with_initial_weighted(layer, graph, inputs):
    return layer(graph, inputs.feats.relu(), inputs.feats, inputs.edge_weight)


def with_types(layer, graph, inputs):
    return layer(graph, inputs.feats, inputs.etypes)


def with_types_and_norm(layer, graph, inputs):
    return layer(graph, inputs.feats, inputs.etypes, norm=inputs.edge_weight[:, None])


def with_lambda(layer, graph, inputs):
    return layer(graph, inputs.feats, lambda_max=[1.7])


class WeightNorm(torch.nn.Module):
    """Normalised weights as arc features, summed at targets with their own gradient."""

    def __init__(self, norm):
        super().__init__()
        self.norm = gnn.EdgeWeightNorm(norm)
        self.conv = gnn.GraphConv(WIDTH, 4, norm="none", allow_zero_in_degree=True)

    def forward(self, graph, feats, edge_weight):
        return self.conv(graph, feats, edge_weight=self.norm(graph, edge_weight))


class WithEdgeProjection(torch.nn.Module):
    """GINEConv adds edge features to vertex features: of one width."""

    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(5, WIDTH)
        self.conv = gnn.GINEConv(torch.nn.Linear(WIDTH, 4), 0.1, learn_eps=True)

    def forward(self, graph, feats, edge_feats):
        return self.conv(graph, feats, self.project(edge_feats))


class Jumping(torch.nn.Module):
    """The larger of two layers' rows, column by column."""

    def __init__(self):
        super().__init__()
        self.first, self.second = gnn.SAGEConv(WIDTH, 4, "mean"), gnn.SAGEConv(4, 4, "mean")
        self.jump = gnn.JumpingKnowledge("max")

    def forward(self, graph, feats):
        hidden = self.first(graph, feats)
        return self.jump([hidden, self.second(graph, hidden.relu())])


def cases() -> dict:
    """name -> (make the layer, call it)."""
    linear = torch.nn.Linear
    made = {
        "sage mean": (lambda: gnn.SAGEConv(WIDTH, 4, "mean"), plain),
        "sage gcn": (lambda: gnn.SAGEConv(WIDTH, 8, "gcn"), plain),
        "sage pool": (lambda: gnn.SAGEConv(WIDTH, 4, "pool"), plain),
        "sage pool weighted": (lambda: gnn.SAGEConv(WIDTH, 4, "pool"), with_column_weights),
        "sage mean weighted": (lambda: gnn.SAGEConv(WIDTH, 4, "mean"), with_column_weights),
        "gin sum": (lambda: gnn.GINConv(linear(WIDTH, 4), "sum", 0.2, learn_eps=True), plain),
        "gin mean": (lambda: gnn.GINConv(linear(WIDTH, 4), "mean"), plain),
        "gin max": (lambda: gnn.GINConv(linear(WIDTH, 4), "max"), plain),
        "gine": (WithEdgeProjection, with_edge_feats),
        "sg": (lambda: gnn.SGConv(WIDTH, 4, k=2, **FREE), plain),
        "sg weighted": (lambda: gnn.SGConv(WIDTH, 4, k=2, **FREE), weighted),
        "tag": (lambda: gnn.TAGConv(WIDTH, 4, k=2), plain),
        "tag weighted": (lambda: gnn.TAGConv(WIDTH, 4, k=2), weighted),
        "appnp": (lambda: gnn.APPNPConv(3, 0.1), in_float64),
        "appnp weighted": (lambda: gnn.APPNPConv(3, 0.1), weighted),
        "gcn2": (lambda: gnn.GCN2Conv(WIDTH, 2, **FREE), with_initial),
        "gcn2 weighted": (
            lambda: gnn.GCN2Conv(WIDTH, 2, project_initial_features=False, **FREE),
            with_initial_weighted,
        ),
        "jumping knowledge": (Jumping, plain),
        "cheb": (lambda: gnn.ChebConv(WIDTH, 4, 3), with_lambda),
        "edge weight norm both": (lambda: WeightNorm("both"), weighted),
        "edge weight norm right": (lambda: WeightNorm("right"), weighted),
        "gat": (lambda: gnn.GATConv(WIDTH, 2, 4, residual=True, **FREE), plain),
        "gat one head": (lambda: gnn.GATConv(WIDTH, 4, 1, **FREE), plain),
        "gat weighted": (lambda: gnn.GATConv(WIDTH, 2, 4, **FREE), weighted),
        "gatv2": (lambda: gnn.GATv2Conv(WIDTH, 2, 4, residual=True, **FREE), plain),
        "dot gat": (lambda: gnn.DotGatConv(WIDTH, 2, 4, **FREE), plain),
        "edge gat": (lambda: gnn.EdgeGATConv(WIDTH, 5, 2, 4, **FREE), with_edge_feats),
        "agnn": (lambda: gnn.AGNNConv(**FREE), plain),
        "rgcn": (lambda: gnn.RelGraphConv(WIDTH, 4, 3), with_types),
        "rgcn basis": (lambda: gnn.RelGraphConv(WIDTH, 4, 3, "basis", 2), with_types_and_norm),
        "rgcn bdd": (lambda: gnn.RelGraphConv(WIDTH, 16, 3, "bdd", 8, layer_norm=True), with_types),
    }
    for norm in ("both", "right", "left", "none"):
        made[f"gcn {norm}"] = (lambda norm=norm: gnn.GraphConv(WIDTH, 4, norm, **FREE), plain)
        made[f"gcn {norm} weighted"] = (lambda norm=norm: gnn.GraphConv(WIDTH, 8, norm, **FREE), weighted)
    return made
