"""The layers and models of PyG that are tested, by name: how each is made and called. Names begin with the class's."""

import warnings

import torch
from torch import nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch_geometric import nn as gnn
    from torch_geometric.utils import add_self_loops, degree

WIDTH, EDGE_WIDTH = 8, 5  # of the inputs in tests/harness/against_dgl.py


def with_columns(*names):
    """How a layer is called: with rows, the graph, and columns of its arcs."""
    return lambda layer, graph, inputs: layer(inputs.feats, graph_of(graph), *(getattr(inputs, name) for name in names))


plain, weighted = with_columns(), with_columns("edge_weight")
with_edges, with_types = with_columns("edge_feats"), with_columns("etypes")


def with_edge_index(layer, graph, inputs):
    return layer(inputs.feats, graph.edge_index)


def with_equal_rows(layer, graph, inputs):
    """Rows of whole numbers, of which many are equal; the gradient is that of the rows before rounding."""
    rows = inputs.feats
    return layer(rows - rows.detach() + rows.detach().round(), graph_of(graph))


def with_initial(layer, graph, inputs):
    return layer(inputs.feats.relu(), inputs.feats, graph_of(graph))


def with_lambda(layer, graph, inputs):
    return layer(inputs.feats, graph_of(graph), lambda_max=1.7)


def graph_of(graph):
    """A DistGraph as it is, and of a whole PyG graph what its layers take."""
    return graph if hasattr(graph, "local") else graph.edge_index


class Tutorial(gnn.MessagePassing):
    """The layer of PyG's tutorial "Creating message passing networks", its functions bound before a graph is loaded."""

    def __init__(self):
        super().__init__(aggr="add")
        self.lin = nn.Linear(WIDTH, 4)

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        row, col = edge_index
        deg = degree(col, x.size(0), dtype=x.dtype)
        scale = deg.pow(-0.5)
        scale[scale == float("inf")] = 0
        return self.propagate(edge_index, x=self.lin(x), norm=scale[row] * scale[col])

    def message(self, x_j, norm):
        return norm.view(-1, 1) * x_j


class OwnSoftmax(gnn.MessagePassing):
    """Attention that a user wrote, with the functions of torch alone."""

    def __init__(self):
        super().__init__(aggr="add", node_dim=0)
        self.score = nn.Linear(2 * WIDTH, 2)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j, index, size_i):
        score = torch.tanh(self.score(torch.cat([x_i, x_j], -1)))
        places = index.view(-1, 1).expand_as(score)
        top = score.new_zeros(size_i, 2).scatter_reduce_(0, places, score, "amax", include_self=False)
        powers = (score - top.index_select(0, index)).exp()
        total = score.new_zeros(size_i, 2).index_add_(0, index, powers)
        share = powers / total[index]
        return x_j * share[:, :1] + share[:, 1:]


class Doubled(torch.autograd.Function):
    """Code below torch's functions, which sees no names."""

    @staticmethod
    def forward(ctx, rows):
        return rows * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class BelowTorch(gnn.MessagePassing):
    """A message that goes through an autograd function, and one that is changed in place: refused, as rows are."""

    def forward(self, x, edge_index, edge_weight):
        return self.propagate(edge_index, x=x, edge_weight=edge_weight)

    def message(self, x_i, x_j, edge_weight):
        x_i.mul_(0.5)
        return Doubled.apply(edge_weight.view(-1, 1) * x_j) + x_i


def cases() -> dict:
    """name -> (make the layer, call it)."""

    def linear(out=4, width=WIDTH):
        return nn.Linear(width, out)

    three = ["mean", "max", "std"]
    degrees = torch.tensor([5, 3, 8, 9, 12, 7, 6, 4, 2, 1])
    pna = {"aggregators": ["mean", "min", "max", "std"], "scalers": ["identity", "amplification", "attenuation"]}
    made = {
        "GCNConv": (lambda: gnn.GCNConv(WIDTH, 4), plain),
        "GCNConv wider": (lambda: gnn.GCNConv(WIDTH, 8, cached=True), plain),
        "GCNConv improved weighted": (lambda: gnn.GCNConv(WIDTH, 4, improved=True), weighted),
        "GCNConv no loops": (lambda: gnn.GCNConv(WIDTH, 4, add_self_loops=False), plain),
        "GCNConv not normalised": (lambda: gnn.GCNConv(WIDTH, 4, normalize=False), weighted),
        "GCNConv reversed": (lambda: gnn.GCNConv(WIDTH, 4, flow="target_to_source"), plain),
        "SAGEConv": (lambda: gnn.SAGEConv(WIDTH, 4), plain),
        "SAGEConv sum": (lambda: gnn.SAGEConv(WIDTH, 8, "sum", normalize=True, root_weight=False), plain),
        "SAGEConv project": (lambda: gnn.SAGEConv(WIDTH, 4, project=True), plain),
        "SAGEConv max": (lambda: gnn.SAGEConv(WIDTH, 4, "max", project=True), plain),
        "SAGEConv max of equal rows": (lambda: gnn.SAGEConv(WIDTH, 4, "max"), with_equal_rows),
        "SAGEConv three aggregators": (lambda: gnn.SAGEConv(WIDTH, 4, three), plain),
        "SAGEConv softmax": (lambda: gnn.SAGEConv(WIDTH, 4, "softmax", aggr_kwargs={"learn": True}), plain),
        "SAGEConv powermean": (lambda: gnn.SAGEConv(WIDTH, 4, "powermean", aggr_kwargs={"learn": True}), plain),
        "GraphConv": (lambda: gnn.GraphConv(WIDTH, 4), weighted),
        "GraphConv max": (lambda: gnn.GraphConv(WIDTH, 4, "max"), weighted),
        "GINConv": (lambda: gnn.GINConv(linear(), train_eps=True), plain),
        "GINEConv": (lambda: gnn.GINEConv(linear(), edge_dim=EDGE_WIDTH), with_edges),
        "GATConv": (lambda: gnn.GATConv(WIDTH, 2, 4), plain),
        "GATConv mean of heads": (lambda: gnn.GATConv(WIDTH, 2, 4, concat=False, residual=True), plain),
        "GATConv no loops": (lambda: gnn.GATConv(WIDTH, 2, 4, add_self_loops=False), plain),
        "GATConv edge features": (lambda: gnn.GATConv(WIDTH, 2, 4, edge_dim=EDGE_WIDTH), with_edges),
        "GATConv two inputs": (lambda: gnn.GATConv((WIDTH, WIDTH), 2, 4, add_self_loops=False), plain),
        "GATv2Conv": (lambda: gnn.GATv2Conv(WIDTH, 2, 4), plain),
        "GATv2Conv no loops": (lambda: gnn.GATv2Conv(WIDTH, 2, 4, concat=False, add_self_loops=False), plain),
        "GATv2Conv edge features": (lambda: gnn.GATv2Conv(WIDTH, 2, 4, edge_dim=EDGE_WIDTH), with_edges),
        "TransformerConv": (lambda: gnn.TransformerConv(WIDTH, 2, 4, beta=True), plain),
        "TransformerConv edge features": (lambda: gnn.TransformerConv(WIDTH, 2, 4, edge_dim=EDGE_WIDTH), with_edges),
        "APPNP": (lambda: gnn.APPNP(3, 0.1), plain),
        "APPNP weighted": (lambda: gnn.APPNP(3, 0.1), weighted),
        "SGConv": (lambda: gnn.SGConv(WIDTH, 4, K=2), plain),
        "SSGConv": (lambda: gnn.SSGConv(WIDTH, 4, alpha=0.1, K=2), plain),
        "TAGConv": (lambda: gnn.TAGConv(WIDTH, 4, K=2), plain),
        "ChebConv": (lambda: gnn.ChebConv(WIDTH, 4, 3), plain),
        "ChebConv weighted": (lambda: gnn.ChebConv(WIDTH, 4, 3, normalization=None), weighted),
        "ChebConv lambda": (lambda: gnn.ChebConv(WIDTH, 4, 3, normalization="rw"), with_lambda),
        "GCN2Conv": (lambda: gnn.GCN2Conv(WIDTH, 0.1, 0.5, 2), with_initial),
        "ARMAConv": (lambda: gnn.ARMAConv(WIDTH, 4, num_stacks=2, num_layers=2), plain),
        "RGCNConv": (lambda: gnn.RGCNConv(WIDTH, 4, 3, num_bases=2), with_types),
        "RGCNConv blocks": (lambda: gnn.RGCNConv(WIDTH, 16, 3, num_blocks=8, aggr="add"), with_types),
        "RGCNConv max": (lambda: gnn.RGCNConv(WIDTH, 4, 3, aggr="max"), with_types),
        "FastRGCNConv": (lambda: gnn.FastRGCNConv(WIDTH, 4, 3), with_types),
        "PNAConv": (lambda: gnn.PNAConv(WIDTH, 4, deg=degrees, **pna), plain),
        "PNAConv edge features": (lambda: gnn.PNAConv(WIDTH, 4, deg=degrees, edge_dim=EDGE_WIDTH, **pna), with_edges),
        "ClusterGCNConv": (lambda: gnn.ClusterGCNConv(WIDTH, 4), plain),
        "LEConv": (lambda: gnn.LEConv(WIDTH, 4), weighted),
        "LGConv": (lambda: gnn.LGConv(), plain),
        "MixHopConv": (lambda: gnn.MixHopConv(WIDTH, 4), plain),
        "AGNNConv": (lambda: gnn.AGNNConv(), plain),
        "FeaStConv": (lambda: gnn.FeaStConv(WIDTH, 4, heads=2), plain),
        "GENConv": (lambda: gnn.GENConv(WIDTH, 4, edge_dim=EDGE_WIDTH, learn_t=True), with_edges),
        "ResGatedGraphConv": (lambda: gnn.ResGatedGraphConv(WIDTH, 4), plain),
        "GatedGraphConv": (lambda: gnn.GatedGraphConv(8, 2), plain),
        "EdgeConv": (lambda: gnn.EdgeConv(linear(4, 2 * WIDTH), "mean"), plain),
        "FiLMConv": (lambda: gnn.FiLMConv(WIDTH, 4), plain),
        "NNConv": (lambda: gnn.NNConv(WIDTH, 4, linear(WIDTH * 4, EDGE_WIDTH)), with_edges),
        "CGConv": (lambda: gnn.CGConv(WIDTH, EDGE_WIDTH, "mean"), with_edges),
        "MFConv": (lambda: gnn.MFConv(WIDTH, 4), plain),
        "SimpleConv": (lambda: gnn.SimpleConv("mean", combine_root="cat"), plain),
        "FAConv": (lambda: gnn.FAConv(WIDTH), with_initial),
        "EGConv": (lambda: gnn.EGConv(WIDTH, 8, ["symnorm", "mean", "max"], num_heads=4, num_bases=2), plain),
        "GeneralConv": (lambda: gnn.GeneralConv(WIDTH, 4, attention=True, heads=2), plain),
        "DirGNNConv": (lambda: gnn.DirGNNConv(gnn.SAGEConv(WIDTH, 4)), with_edge_index),
        "Sequential": (sequential, plain),
        "GraphSAGE": (lambda: gnn.GraphSAGE(WIDTH, 8, 2, 4, norm="batch_norm", jk="cat"), plain),
        "GCN": (lambda: gnn.GCN(WIDTH, 8, 2, 4, norm="graph_norm"), plain),
        "GAT": (lambda: gnn.GAT(WIDTH, 8, 2, 4, v2=True, heads=4, norm="layer_norm"), plain),
        "GIN": (lambda: gnn.GIN(WIDTH, 8, 2, 4, norm="pair_norm"), plain),
        "PNA": (lambda: gnn.PNA(WIDTH, 8, 2, 4, deg=degrees, **pna), plain),
        "EdgeCNN": (lambda: gnn.EdgeCNN(WIDTH, 8, 2, 4), plain),
        "own layer: weight times x_j": (Tutorial, with_edge_index),
        "own layer: any other message, softmax": (OwnSoftmax, plain),
    }
    return made


def sequential():
    first, last = gnn.GCNConv(WIDTH, 8), gnn.GINConv(nn.Linear(8, 4))
    steps = [(first, "x, edge_index -> x"), nn.ReLU(), (last, "x, edge_index -> x")]
    return gnn.Sequential("x, edge_index", steps)
