"""Global ids as an index, tables of vertices, and own random draws."""

import math

import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
import torch_geometric.utils as U
from cases import case, expressions, trainings
from layer_cases import Function
from torch import nn
from worlds import NUM_CLASSES, WIDTH

IDS = "global ids"
TABLES = "tables of vertices"
RANDOM = "own random draws"
RELATIONS_NODES = 57  # of the world "relations"

expressions(
    IDS,
    {
        "train ids": lambda s, x: x[s.ids.train],
        "ids in no order": lambda s, x: x[s.ids.some],
        "ids twice": lambda s, x: x[torch.cat([s.ids.some, s.ids.some])],
        "a list of ids": lambda s, x: x[[5, 1, 1, 40]],
        "numpy ids": lambda s, x: x[s.ids.some.numpy()],
        "int32 ids": lambda s, x: x[s.ids.some.int()],
        "negative ids": lambda s, x: x[torch.tensor([-1, -3, 2])],
        "ids and a column": lambda s, x: x[s.ids.some, 2],
        "ids and columns": lambda s, x: x[s.ids.some, torch.arange(17) % WIDTH],
        "ids and a slice": lambda s, x: x[s.ids.some, :3],
        "ids of two dims": lambda s, x: x[s.ids.pos].prod(0),
        "pairs": lambda s, x: (x[s.ids.pos[0]] * x[s.ids.pos[1]]).sum(-1),
        "pairs beside": lambda s, x: torch.cat([x[s.ids.pos[0]], x[s.ids.pos[1]]], dim=-1),
        "pairs under": lambda s, x: torch.cat([(x[p[0]] * x[p[1]]).sum(-1) for p in (s.ids.pos, s.ids.neg)]),
        "pair labels": lambda s, x: F.binary_cross_entropy_with_logits(
            torch.cat([(x[p[0]] * x[p[1]]).sum(-1) for p in (s.ids.pos, s.ids.neg)]),
            torch.cat([torch.ones(40), torch.zeros(40)]),
        ),
        "index_select": lambda s, x: x.index_select(0, s.ids.some),
        "torch.index_select": lambda s, x: torch.index_select(x, 0, s.ids.train).mean(0),
        "embedding": lambda s, x: F.embedding(s.ids.some, x),
        "gather": lambda s, x: x.gather(0, s.ids.some.view(-1, 1).expand(-1, WIDTH)),
        "take_along_dim": lambda s, x: torch.take_along_dim(x, s.y.unsqueeze(1), 1),
        "permuted rows": lambda s, x: x[s.ids.perm],
        "permuted back": lambda s, x: x[s.ids.perm][s.ids.perm.argsort()],
        "one id": lambda s, x: x[s.ids.some[0]],
        "mask from ids": lambda s, x: x[torch.zeros(s.num_nodes, dtype=torch.bool).index_fill(0, s.ids.train, True)],
        "plain mask": lambda s, x: x[torch.arange(s.num_nodes) % 3 == 0],
        "labels by ids": lambda s, x: F.cross_entropy(x[s.ids.valid], s.y[s.ids.valid]),
        "masked labels of ids": lambda s, x: x[s.ids.train][s.y[s.ids.train] == 1],
        "ids of ids": lambda s, x: x[s.ids.train][torch.tensor([3, 0, 7])],
        "batches of ids": lambda s, x: sum(F.cross_entropy(x[b], s.y[b]) for b in s.ids.train.split(7)),
        "set by ids": lambda s, x: torch.zeros(s.num_nodes, WIDTH).index_copy(0, s.ids.valid, x[s.ids.valid]),
        "add by ids": lambda s, x: torch.zeros(s.num_nodes, WIDTH).index_add(0, s.ids.some, x[s.ids.some]),
        "index_put": lambda s, x: x.index_put((s.ids.some[:1],), torch.zeros(WIDTH)),
        "no ids": lambda s, x: x[s.ids.train[:0]].sum(0) + x.mean(0),
        "hits at k": lambda s, x: ((x[s.ids.pos[0]] * x[s.ids.pos[1]]).sum(-1) > 0.1).double().mean() * x.mean(),
        "id too large": lambda s, x: x[torch.tensor([0, 10**6])] if s.dg else x[torch.tensor([0])],
        "score of all pairs of some": lambda s, x: x[s.ids.some] @ x[s.ids.some].t(),
        "arcs by columns": lambda s, x: (x[s.g.edge_index[0]] * x[s.g.edge_index[1]]).sum(),
        "arcs unpacked": lambda s, x: (lambda row, col: (x[row] - x[col]).pow(2).mean())(*s.g.edge_index),
        "arcs of one relation": lambda s, x: (lambda e: (x[e[0]] * x[e[1]]).sum(-1).sigmoid().log().mean())(
            s.g.edge_index[:, s.g.edge_type == 1]
        ),
        "arc weights": lambda s, x: (x[s.g.edge_index[0]] * s.g.edge_weight.unsqueeze(1)).mean(0),
    },
)


class OnTable(nn.Module):
    """A model that reads rows of a table of vertices."""

    def __init__(self, table, use):
        super().__init__()
        self.table, self.conv, self.use = table, gnn.SAGEConv(WIDTH, NUM_CLASSES), use

    def forward(self, s, x):
        return self.use(self, s, x)


def embedding(n):
    return nn.Embedding(n, WIDTH)


def parameter(*shape):
    return lambda n: nn.ParameterList([torch.linspace(-1, 1, n * math.prod(shape)).view(n, *shape)])


TABLE_USES = {
    "embedding weight": (embedding, lambda m, s, x: m.conv(m.table.weight, s.g.edge_index)),
    "embedding of arange": (embedding, lambda m, s, x: m.conv(m.table(torch.arange(s.num_nodes)), s.g.edge_index)),
    "embedding of ids": (embedding, lambda m, s, x: m.conv(x, s.g.edge_index) + m.table.weight[:, :4]),
    "embedding of some ids": (embedding, lambda m, s, x: m.table(s.ids.some)),
    "parameter": (parameter(WIDTH), lambda m, s, x: m.conv(m.table[0], s.g.edge_index)),
    "parameter added": (parameter(WIDTH), lambda m, s, x: m.conv(x + m.table[0], s.g.edge_index)),
    "parameter beside": (
        parameter(4),
        lambda m, s, x: m.conv(torch.cat([x[:, :4], m.table[0]], 1), s.g.edge_index),
    ),
    "parameter by ids": (parameter(WIDTH), lambda m, s, x: m.table[0][s.ids.train]),
    "a bias per vertex": (parameter(), lambda m, s, x: m.conv(x, s.g.edge_index) + m.table[0].unsqueeze(1)),
    "a wide linear": (
        lambda n: nn.Linear(n, WIDTH),
        lambda m, s, x: m.conv(x, s.g.edge_index) + m.table(torch.eye(s.num_nodes))[:, :4],
    ),
    "a one-hot product": (
        lambda n: nn.Linear(n, WIDTH, bias=False),
        lambda m, s, x: m.conv(x + m.table.weight.t(), s.g.edge_index),
    ),
    "two tables": (
        lambda n: nn.ModuleList([embedding(n), embedding(n)]),
        lambda m, s, x: m.conv(m.table[0].weight * m.table[1].weight.sigmoid(), s.g.edge_index),
    ),
    "regularised": (
        embedding,
        lambda m, s, x: m.conv(m.table.weight, s.g.edge_index) + 0.1 * m.table.weight.pow(2).mean(),
    ),
    "scores of pairs": (
        embedding,
        lambda m, s, x: (m.table(s.ids.pos[0]) * m.table(s.ids.pos[1])).sum(-1, keepdim=True),
    ),
}
for table_name, (make_table, use_table) in TABLE_USES.items():
    for optimizer_name in ("SGD", "Adam"):

        @case(TABLES, f"{table_name}, {optimizer_name}")
        def table(s, make_table=make_table, use_table=use_table, optimizer_name=optimizer_name):
            model, kind = OnTable(make_table(s.num_nodes), use_table), getattr(torch.optim, optimizer_name)
            return s.train_rows(model, lambda m: m(s, s.x), lambda parameters: kind(parameters, lr=0.05))


@case(TABLES, "sparse gradients and SparseAdam")
def sparse(s):
    model = OnTable(nn.Embedding(s.num_nodes, WIDTH, sparse=True), lambda m, s, x: m.table(s.ids.train))
    model.conv = nn.Identity()
    return s.train(model, lambda m: m(s, s.x).sin().mean(), lambda parameters: torch.optim.SparseAdam(parameters, 0.05))


def _entropy(s, out):
    return F.cross_entropy(out[s.train_mask], s.y[s.train_mask])


def _featureless(s, model):
    hidden = model[0](None, s.g.edge_index, s.g.edge_type).relu()
    return _entropy(s, model[1](hidden, s.g.edge_index, s.g.edge_type))


trainings(
    TABLES,
    {
        "featureless RGCN": (
            lambda: nn.ModuleList([gnn.RGCNConv(RELATIONS_NODES, 8, 3, num_bases=2), gnn.RGCNConv(8, NUM_CLASSES, 3)]),
            _featureless,
        ),
        "featureless RGCN by relation": (
            lambda: gnn.FastRGCNConv(RELATIONS_NODES, NUM_CLASSES, 3),
            lambda s, m: F.cross_entropy(m(None, s.g.edge_index, s.g.edge_type), s.y),
        ),
        "degree features": (
            lambda: gnn.GCNConv(1, NUM_CLASSES),
            lambda s, m: _entropy(s, m(U.degree(s.g.edge_index[1], s.num_nodes).view(-1, 1), s.g.edge_index)),
        ),
    },
    world="relations",
)
expressions(
    RANDOM,
    {
        "rand_like": lambda s, x: x * torch.rand_like(x),
        "randn_like": lambda s, x: x + torch.randn_like(x),
        "reparametrised": lambda s, x: x + torch.randn_like(x) * x.exp(),
        "bernoulli": lambda s, x: x * torch.bernoulli(torch.full_like(x, 0.4)),
        "bernoulli of rows": lambda s, x: x * torch.bernoulli(x.detach().sigmoid()),
        "bernoulli in place": lambda s, x: x * torch.empty_like(x).bernoulli_(0.3),
        "uniform in place": lambda s, x: x * torch.empty_like(x).uniform_(-1, 1),
        "normal in place": lambda s, x: x + torch.zeros_like(x).normal_(),
        "randint_like": lambda s, x: x * torch.randint_like(x, 5),
        "dropout": lambda s, x: F.dropout(x, 0.4),
        "dropout twice": lambda s, x: F.dropout(F.dropout(x, 0.3) + 1, 0.3),
        "dropout1d": lambda s, x: F.dropout1d(x.unsqueeze(1), 0.4).squeeze(1),
        "alpha dropout": lambda s, x: F.alpha_dropout(x, 0.3, training=True),
        "feature dropout": lambda s, x: F.feature_alpha_dropout(x.view(-1, 2, 4), 0.3, training=True).flatten(1),
        "rrelu": lambda s, x: F.rrelu(x, training=True),
        "gumbel softmax": lambda s, x: F.gumbel_softmax(x, tau=0.5),
        "gumbel hard": lambda s, x: F.gumbel_softmax(x, hard=True),
        "multinomial": lambda s, x: x * torch.multinomial(x.detach().softmax(1), 1),
        "normal of rows": lambda s, x: x + torch.normal(x.detach(), 1.0),
        "poisson": lambda s, x: x * torch.poisson(x.detach().exp()),
        "exponential": lambda s, x: x * torch.empty_like(x).exponential_(),
        "rand by shape": lambda s, x: x * torch.rand(x.shape),
        "rand by number": lambda s, x: x * torch.rand(s.num_nodes, 1),
        "randperm shuffles rows": lambda s, x: x[torch.randperm(s.num_nodes)],
        "randperm of size": lambda s, x: x[torch.randperm(x.size(0))],
        "feature mask of GRACE": lambda s, x: x * (torch.rand(WIDTH) > 0.3),
        "node mask": lambda s, x: x * (torch.rand(x.size(0), 1) > 0.3),
        "drop whole rows": lambda s, x: x[torch.rand_like(x[:, 0]) > 0.5],
        "noise on some rows": lambda s, x: x[s.train_mask] + torch.randn_like(x[s.train_mask]),
        "noise on rows by ids": lambda s, x: x[s.ids.train] * torch.rand_like(x[s.ids.train]),
        "distribution": lambda s, x: torch.distributions.Normal(x, 1.0).rsample(),
        "categorical": lambda s, x: x * torch.distributions.Categorical(logits=x.detach()).sample().unsqueeze(1),
    },
    random=True,
)


class Plain(nn.Module):
    """A perceptron with dropout and no layer of PyG."""

    def __init__(self, module):
        super().__init__()
        self.first, self.last, self.module = nn.Linear(WIDTH, 8), nn.Linear(8, NUM_CLASSES), module

    def forward(self, x):
        hidden = self.first(x).relu()
        hidden = F.dropout(hidden, 0.5, training=self.training) if self.module is None else self.module(hidden)
        return self.last(hidden)


DROPS = {
    "F.dropout in a plain model": lambda: None,
    "nn.Dropout in a plain model": lambda: nn.Dropout(0.5),
    "nn.Dropout1d": lambda: nn.Sequential(nn.Unflatten(1, (8, 1)), nn.Dropout1d(0.5), nn.Flatten()),
    "nn.AlphaDropout": lambda: nn.AlphaDropout(0.3),
    "nn.RReLU": lambda: nn.RReLU(),
}
trainings(
    RANDOM,
    {name: (lambda make=make: Plain(make()), lambda s, m: _entropy(s, m(s.x))) for name, make in DROPS.items()},
    random=True,
)
DROPPING_LAYERS = {
    "GATConv": lambda: gnn.GATConv(WIDTH, 3, 2, dropout=0.4),
    "GATv2Conv": lambda: gnn.GATv2Conv(WIDTH, 3, 2, dropout=0.4),
    "TransformerConv": lambda: gnn.TransformerConv(WIDTH, 3, 2, dropout=0.4),
    "FAConv": lambda: Function(lambda layer, x, edge_index: layer(x, x, edge_index), gnn.FAConv(WIDTH, dropout=0.4)),
    "APPNP": lambda: gnn.APPNP(3, 0.1, dropout=0.4),
    "ARMAConv": lambda: gnn.ARMAConv(WIDTH, 6, dropout=0.4),
    "SuperGATConv": lambda: gnn.SuperGATConv(WIDTH, 3, 2),
    "GCN": lambda: gnn.GCN(WIDTH, 8, 2, 4, dropout=0.5),
    "PMLP": lambda: gnn.PMLP(WIDTH, 8, 4, 2, dropout=0.5),
    "GPSConv": lambda: gnn.GPSConv(WIDTH, None, 2, dropout=0.5, norm=None, attn_type="performer"),
    "MaskLabel": lambda: Function(lambda lin, x, edge_index: lin(x * (torch.rand_like(x) < 0.7)), nn.Linear(WIDTH, 4)),
}
trainings(
    RANDOM,
    {
        **{
            f"dropout of {name}": (make, lambda s, m: m(s.x, s.g.edge_index).sin().mean())
            for name, make in DROPPING_LAYERS.items()
        },
        "dropout_edge": (
            lambda: gnn.GCNConv(WIDTH, 4),
            lambda s, m: m(s.x, U.dropout_edge(s.g.edge_index, 0.4)[0]).sin().mean(),
        ),
        "dropout_node": (
            lambda: gnn.GCNConv(WIDTH, 4),
            lambda s, m: m(s.x, U.dropout_node(s.g.edge_index, 0.4)[0]).sin().mean(),
        ),
    },
    random=True,
)


@case(RANDOM, "mask_feature", random=True)
def mask_features(s):
    return {way: U.mask_feature(s.x, 0.4, mode=way)[0] for way in ("col", "row", "all")}


@case(RANDOM, "negative_sampling", random=True)
def negatives(s):
    pairs = U.negative_sampling(s.g.edge_index, s.num_nodes, 50)
    return (s.x[pairs[0]] * s.x[pairs[1]]).sum(-1)
