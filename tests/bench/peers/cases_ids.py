"""Global ids as an index, tables of vertices, own random draws, changes in place, torch's modes, habits of Data."""

import copy
import io
import math

import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
import torch_geometric.transforms as T
import torch_geometric.utils as U
from cases import calls, case, expressions, trainings
from layer_cases import Function
from torch import nn
from torch.utils.checkpoint import checkpoint
from worlds import NUM_CLASSES, WIDTH

IDS = "global ids"
TABLES = "tables of vertices"
RANDOM = "own random draws"
PLACE = "changes in place"
MODES = "torch's modes"
DATA = "habits of Data"
UTILS = "functions of PyG"
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
    "nn.Dropout in place": lambda: nn.Dropout(0.5, inplace=True),
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


def _changed(change):
    def run(s, x):
        rows = x * 1.0
        result = change(s, rows)
        return rows if result is None else result

    return run


def _set(target, where, value):
    target[where] = value


expressions(
    PLACE,
    {
        name: _changed(change)
        for name, change in {
            "relu_": lambda s, x: x.relu_(),
            "add_": lambda s, x: x.add_(1),
            "augmented": lambda s, x: x.__imul__(2).__iadd__(0.5),
            "sub mean": lambda s, x: x.sub_(x.detach().mean(0)),
            "clamp_": lambda s, x: x.clamp_(min=0),
            "F.relu in place": lambda s, x: F.relu(x, inplace=True),
            "F.elu in place": lambda s, x: F.elu(x, inplace=True),
            "leaky relu in place": lambda s, x: F.leaky_relu(x, 0.1, inplace=True),
            "masked_fill_": lambda s, x: x.masked_fill_(s.train_mask.unsqueeze(1), 0.0),
            "set a mask": lambda s, x: _set(x, s.train_mask, 0.0),
            "set a mask to rows": lambda s, x: _set(x, s.train_mask, x.detach()[s.train_mask] * 2),
            "set a mask to one-hot": lambda s, x: _set(
                x[:, :NUM_CLASSES], s.train_mask, F.one_hot(s.y[s.train_mask], NUM_CLASSES).double()
            ),
            "set ids": lambda s, x: _set(x, s.ids.train, 0.5),
            "set ids to rows": lambda s, x: _set(x, s.ids.train, x.detach()[s.ids.train] * 2),
            "set ids to one-hot": lambda s, x: _set(x, s.ids.train, F.one_hot(s.y[s.ids.train], WIDTH).double()),
            "set a column": lambda s, x: _set(x, (slice(None), 2), 0.5),
            "set a column to rows": lambda s, x: _set(x, (slice(None), 2), x.detach().sum(1)),
            "set one row": lambda s, x: _set(x, 3, 0.5),
            "set a slice of rows": lambda s, x: _set(x, slice(2, 9), 0.5),
            "set a boolean of all": lambda s, x: _set(x, x.detach() < 0, 0.0),
            "index_add_": lambda s, x: x.index_add_(0, s.ids.some, torch.ones(17, WIDTH)),
            "index_fill_": lambda s, x: x.index_fill_(0, s.ids.train, 0.3),
            "scatter_ of columns": lambda s, x: x.scatter_(1, s.y.unsqueeze(1), 1.0),
            "one-hot by scatter_": lambda s, x: torch.zeros(s.num_nodes, WIDTH).scatter_(1, s.y.unsqueeze(1), 1.0) * x,
            "copy_": lambda s, x: torch.zeros_like(x).copy_(x),
            "fill_": lambda s, x: torch.empty_like(x).fill_(0.5) + x,
            "zero_": lambda s, x: x.detach().clone().zero_() + x,
            "out argument": lambda s, x: torch.add(x.detach(), 1, out=torch.empty_like(x)) * x,
            "a view changed": lambda s, x: x[:, :3].mul_(2),
            "a chunk changed": lambda s, x: x.chunk(2, 1)[0].add_(1),
            "infinities replaced": lambda s, x: _set(x, x.detach() == float("inf"), 0.0),
            "normalised in place": lambda s, x: x.div_(x.detach().norm(dim=1, keepdim=True)),
            "labels changed": lambda s, x: F.cross_entropy(x, s.y.clone().clamp_(max=2)),
            "mask changed": lambda s, x: x * s.train_mask.clone().logical_not_().unsqueeze(1),
            "mask and ids": lambda s, x: x[s.train_mask.clone().index_fill_(0, s.ids.valid, True)],
        }.items()
    },
)


class Two(nn.Module):
    """Two GCN layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = gnn.GCNConv(WIDTH, 8), gnn.GCNConv(8, NUM_CLASSES)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def _loss(s, model, x=None):
    return _entropy(s, model(s.x if x is None else x, s.g.edge_index))


def _sgd(s, model):
    return s.optimizer(torch.optim.SGD(model.parameters(), 0.05))


@case(MODES, "inference mode")
def inference(s):
    model = s.distribute(Two()).eval()
    with torch.inference_mode():
        out = model(s.g.x, s.g.edge_index)
        kept = out.softmax(1)
        right = int((out.argmax(1) == s.y)[s.g.val_mask].sum())
    return {"out": kept.clone(), "right": right, "mean": float(kept.mean())}


@case(MODES, "no_grad and training after")
def no_grad(s):
    model = Two()
    with torch.no_grad():
        before = model(s.g.x, s.g.edge_index)
    return s.train(model, lambda m: _loss(s, m)) | {"before": before}


@case(MODES, "training after inference mode")
def after_inference(s):
    model = s.distribute(Two())
    with torch.inference_mode():
        model(s.g.x, s.g.edge_index)
    return s.train(model, lambda m: _loss(s, m))


@case(MODES, "hooks on modules")
def hooks(s):
    model, seen = Two(), []
    model.first.register_forward_hook(lambda module, inputs, out: out * 0.5)
    model.second.register_forward_pre_hook(lambda module, inputs: (inputs[0].tanh(), inputs[1]))
    model.first.register_full_backward_hook(lambda module, grads, outs: seen.append(outs[0].norm().item()))
    return s.train(model, lambda m: _loss(s, m)) | {"seen": seen}


@case(MODES, "hooks on tensors")
def tensor_hooks(s):
    seen = []

    def loss(model):
        out = model(s.x, s.g.edge_index)
        out.register_hook(lambda grad: grad * 0.5)
        out.register_hook(lambda grad: seen.append(float(grad.abs().sum())))
        return _entropy(s, out)

    return s.train(Two(), loss) | {"seen": seen}


@case(MODES, "retain_grad")
def retain(s):
    def rows(model):
        out = model(s.x, s.g.edge_index)
        out.retain_grad()
        return out

    found = s.train_rows(Two(), rows)
    return {"losses": found["losses"], "weights": found["weights"], "gradient": found["out"].grad}


@case(MODES, "deepcopy of the model")
def deep_copies(s):
    model = s.distribute(Two())
    twin = copy.deepcopy(model)
    return s.train(twin, lambda m: _loss(s, m)) | {"out": model(s.x, s.g.edge_index)}


@case(MODES, "deepcopy of the best state")
def best_state(s):
    model = Two()
    found = s.train(model, lambda m: _loss(s, m))
    state = copy.deepcopy(model.state_dict())
    other = s.distribute(Two())
    other.load_state_dict(state)
    return found | {"out": other(s.x, s.g.edge_index)}


@case(MODES, "saved and loaded model")
def saved(s):
    model = s.distribute(Two())
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    other = s.distribute(Two())
    other.load_state_dict(torch.load(buffer))
    return other(s.x, s.g.edge_index)


@case(MODES, "autocast to bfloat16")
def autocast(s):
    model = s.distribute(Two())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(s.g.x, s.g.edge_index)
    return {"dtype": str(out.dtype), "finite": bool(out.isfinite().all())}


@case(MODES, "anomaly mode")
def anomaly(s):
    with torch.autograd.detect_anomaly(check_nan=True):
        return s.train(Two(), lambda m: _loss(s, m))


@case(MODES, "autograd.grad")
def autograd_grad(s):
    model, x = s.distribute(Two()), s.x
    loss = model(x, s.g.edge_index).sin().sum()
    return {"gradient": torch.autograd.grad(loss, x)[0]}


@case(MODES, "autograd.grad of weights")
def autograd_weights(s):
    model = s.distribute(Two())
    grads = torch.autograd.grad(model(s.x, s.g.edge_index).sin().sum(), list(model.parameters()))
    return list(grads)


@case(MODES, "second derivatives")
def second(s):
    model, x = s.distribute(Two()), s.x
    first = torch.autograd.grad(model(x, s.g.edge_index).sin().sum(), x, create_graph=True)[0]
    first.pow(2).sum().backward()
    return {"gradient": x.grad}


@case(MODES, "torch.func.functional_call")
def functional(s):
    model = s.distribute(Two())
    halves = {name: one * 0.5 for name, one in model.named_parameters()}
    return torch.func.functional_call(model, halves, (s.x, s.g.edge_index))


@case(MODES, "torch.func.grad")
def func_grad(s):
    model = s.distribute(Two())
    weights = {name: one.detach() for name, one in model.named_parameters()}

    def loss(weights):
        return torch.func.functional_call(model, weights, (s.g.x, s.g.edge_index)).sin().mean()

    return torch.func.grad(loss)(weights)


@case(MODES, "torch.compile")
def compiled(s):
    model = s.distribute(Two())
    fast = torch.compile(model, backend="eager")
    return fast(s.x, s.g.edge_index)


@case(MODES, "LBFGS")
def lbfgs(s):
    model = s.distribute(Two())
    optimizer = s.optimizer(torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3))
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = _loss(s, model)
        loss.backward()
        losses.append(float(loss))
        return loss

    optimizer.step(closure)
    return {"losses": losses, "weights": s.weights(model)}


@case(MODES, "gradients accumulated")
def accumulated(s):
    model = s.distribute(Two())
    optimizer = _sgd(s, model)
    for mask in (s.g.train_mask, s.g.val_mask):
        out = model(s.x, s.g.edge_index)
        F.cross_entropy(out[mask], s.y[mask]).backward()
    optimizer.step()
    return s.weights(model)


@case(MODES, "gradients clipped")
def clipped(s):
    model = s.distribute(Two())
    optimizer = _sgd(s, model)
    norms = []
    for _ in range(3):
        optimizer.zero_grad()
        (_loss(s, model) * 20).backward()
        norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.5)))
        optimizer.step()
    return {"norms": norms, "weights": s.weights(model)}


@case(MODES, "gradients summed and clipped")
def summed_clipped(s):
    model = s.distribute(Two())
    optimizer = _sgd(s, model)
    for _ in range(3):
        optimizer.zero_grad()
        (_loss(s, model) * 20).backward()
        if s.dg:
            s.dg.sum_gradients(model, s.g)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return s.weights(model)


@case(MODES, "two optimisers")
def two_optimizers(s):
    model = s.distribute(Two())
    several = [_sgd(s, part) for part in (model.first, model.second)]
    for _ in range(2):
        for one in several:
            one.zero_grad()
        _loss(s, model).backward()
        for one in several:
            one.step()
    return s.weights(model)


@case(MODES, "adversarial features")
def adversarial(s):
    """FLAG: a perturbation of the features that climbs the loss."""
    model = s.distribute(Two())
    optimizer = _sgd(s, model)
    perturb = torch.zeros_like(s.g.x).requires_grad_()
    loss = _loss(s, model, s.g.x + perturb) / 2
    for _ in range(2):
        loss.backward()
        moved = perturb.detach() + 0.1 * torch.sign(perturb.grad.detach())
        perturb.data = moved.data
        perturb.grad[:] = 0
        loss = _loss(s, model, s.g.x + perturb) / 2
    loss.backward()
    optimizer.step()
    return s.weights(model)


def _checkpointed(reentrant):
    def loss(s, model):
        hidden = checkpoint(model.first, s.x, s.g.edge_index, use_reentrant=reentrant)
        return model.second(hidden.relu(), s.g.edge_index).sin().mean()

    return Two, loss


def _half_frozen():
    model = Two()
    model.first.requires_grad_(False)
    return model


trainings(
    MODES,
    {
        "checkpoint, use_reentrant=False": _checkpointed(False),
        "checkpoint, use_reentrant=True": _checkpointed(True),
        "checkpoint of the model with norms": (
            lambda: nn.Sequential(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)),
            lambda s, m: checkpoint(m, s.x, use_reentrant=False).sin().mean(),
        ),
        "weight decay by hand": (
            Two,
            lambda s, m: _loss(s, m) + 0.01 * sum(one.pow(2).sum() for one in m.parameters()),
        ),
        "a part frozen": (_half_frozen, _loss),
    },
)
calls(
    MODES,
    {
        "deepcopy of rows": lambda s: copy.deepcopy(s.g.x) + copy.copy(s.g.x),
        "torch.func.vmap": lambda s: torch.func.vmap(lambda row: row.sin() / row.norm())(s.g.x),
    },
)

DATA_TEXTS = {
    "num_nodes": lambda g: g.num_nodes + 0,
    "num_edges": lambda g: g.num_edges + 0,
    "num_features": lambda g: g.num_features,
    "num_node_features": lambda g: g.num_node_features,
    "num_edge_features": lambda g: g.num_edge_features,
    "item": lambda g: g["x"] * 1,
    "items": lambda g: [g[name] * 1 for name in ("x", "y")],
    "keys": lambda g: sorted(name for name in g.keys() if name in ("x", "y", "train_mask", "edge_index")),
    "contains": lambda g: ("x" in g, "nothing" in g, "edge_index" in g),
    "called with names": lambda g: [value.sum() for _, value in g("train_mask", "val_mask", "test_mask")],
    "clone": lambda g: g.clone().x * 1,
    "copy": lambda g: copy.copy(g).x * 1,
    "to": lambda g: g.to("cpu").x * 1,
    "to device": lambda g: g.to(torch.device("cpu"), non_blocking=True).x * 1,
    "cpu": lambda g: g.cpu().x * 1,
    "contiguous": lambda g: g.contiguous().x * 1,
    "is_directed": lambda g: g.is_directed(),
    "is_undirected": lambda g: g.is_undirected(),
    "has_isolated_nodes": lambda g: g.has_isolated_nodes(),
    "has_self_loops": lambda g: g.has_self_loops(),
    "classes": lambda g: int(g.y.max()) + 1,
    "shape of edge_index": lambda g: (g.edge_index.size(1), g.edge_index.shape[0], g.edge_index.dtype),
    "average degree": lambda g: g.num_edges / g.num_nodes,
    "train rate": lambda g: int(g.train_mask.sum()) / g.num_nodes,
    "masks": lambda g: (g.train_mask | g.val_mask, ~g.test_mask, (g.train_mask & g.val_mask).any()),
    "mask to ids": lambda g: g.x[g.train_mask.nonzero(as_tuple=False).view(-1)],
    "num_nodes of y": lambda g: (g.y.size(0), len(g.y), g.y.numel()),
    "dim": lambda g: (g.x.dim(), g.x.ndim, g.x.dtype, g.x.device, g.x.is_floating_point()),
    "validate": lambda g: g.validate(),
    "is_sparse": lambda g: (g.x.is_sparse, g.x.requires_grad, g.x.is_cuda),
    "get": lambda g: g.get("nothing") is None,
    "hasattr": lambda g: (hasattr(g, "x"), hasattr(g, "nothing"), hasattr(g, "adj_t")),
    "subgraph": lambda g: g.subgraph(torch.arange(10)).x,
    "coalesce": lambda g: g.coalesce().x,
    "to_dict": lambda g: g.to_dict()["x"] * 1,
    "stores": lambda g: g.stores[0]["x"] * 1,
    "num_nodes called": lambda g: g.num_nodes if isinstance(g.num_nodes, int) else g.num_nodes(),
    "numpy of labels": lambda g: g.y.numpy().copy(),
    "numpy of rows": lambda g: g.x.numpy()[:7].copy(),
    "list of labels": lambda g: sum(g.y.tolist()[:9]),
    "cpu numpy": lambda g: g.x.detach().cpu().numpy().mean(0),
    "iterated masks": lambda g: [int(mask.sum()) for mask in (g.train_mask, g.val_mask, g.test_mask)],
}
calls(DATA, {name: lambda s, read=read: read(s.g) for name, read in DATA_TEXTS.items()})


@case(DATA, "a column set")
def column_set(s):
    s.g.z = s.g.x * 2
    found = s.g.z + s.g["z"]
    del s.g.z
    return found


@case(DATA, "features set")
def features_set(s):
    before = s.g.x
    s.g.x = F.normalize(before, dim=1)
    out = gnn.GCNConv(WIDTH, 4)(s.g.x, s.g.edge_index)
    s.g.x = before
    return out


@case(DATA, "a plain column set")
def plain_column(s):
    s.g.n_id = torch.arange(s.num_nodes)
    found = s.g.x * s.g.n_id.unsqueeze(1)
    del s.g.n_id
    return found


@case(DATA, "an item set")
def item_set(s):
    s.g["w"] = s.g.x.sum(1)
    found = s.g["w"] * 1
    del s.g["w"]
    return found


@case(DATA, "a mask set")
def mask_set(s):
    before = s.g.train_mask
    s.g.train_mask = torch.zeros(s.num_nodes, dtype=torch.bool)
    s.g.train_mask[s.ids.train[:5]] = True
    found = s.g.x[s.g.train_mask]
    s.g.train_mask = before
    return found


@case(DATA, "an accuracy as PyG's examples have it", world="pages")
def accuracy(s):
    model = s.distribute(Two()).eval()
    with torch.no_grad():
        predicted = model(s.g.x, s.g.edge_index).argmax(dim=-1)
        found = []
        for mask in [s.g.train_mask, s.g.val_mask, s.g.test_mask]:
            found.append(int((predicted[mask] == s.g.y[mask]).sum()) / int(mask.sum()))
    return found


TRANSFORMS = {
    "NormalizeFeatures": T.NormalizeFeatures(),
    "ToUndirected": T.ToUndirected(),
    "AddSelfLoops": T.AddSelfLoops(),
    "GCNNorm": T.GCNNorm(),
    "LocalDegreeProfile": T.LocalDegreeProfile(),
    "OneHotDegree": T.OneHotDegree(70),
    "Constant": T.Constant(),
    "RandomNodeSplit": T.RandomNodeSplit(),
    "RandomLinkSplit": T.RandomLinkSplit(),
    "AddLaplacianEigenvectorPE": T.AddLaplacianEigenvectorPE(2),
    "AddRandomWalkPE": T.AddRandomWalkPE(2),
    "SIGN": T.SIGN(2),
    "ToSparseTensor": T.ToSparseTensor(),
    "LargestConnectedComponents": T.LargestConnectedComponents(),
    "GDC": T.GDC(),
    "SVDFeatureReduction": T.SVDFeatureReduction(3),
    "RemoveIsolatedNodes": T.RemoveIsolatedNodes(),
    "Pad": T.Pad(100),
    "ToDevice": T.ToDevice("cpu"),
    "Compose": T.Compose([T.NormalizeFeatures(), T.ToDevice("cpu")]),
    "RootedEgoNets": T.RootedEgoNets(1),
    "VirtualNode": T.VirtualNode(),
    "LineGraph": T.LineGraph(),
    "FeaturePropagation": T.FeaturePropagation(torch.zeros(61, WIDTH, dtype=torch.bool)),
    "RandomNodeSplit seeded": T.RandomNodeSplit(num_val=5, num_test=5),
}
for transform_name, make_transform in TRANSFORMS.items():

    @case(DATA, f"T.{transform_name}", random="Random" in transform_name)
    def transformed(s, make_transform=make_transform):
        g = make_transform(s.g.clone() if not s.dg else s.g)
        out = gnn.GCNConv(g.x.size(1), 4)(g.x, g.edge_index)
        return {"out": out, "num_edges": g.num_edges if isinstance(g.num_edges, int) else -1}


UTILS_CALLS = {
    "degree": lambda s: U.degree(s.g.edge_index[0], s.num_nodes),
    "degree of targets": lambda s: U.degree(s.g.edge_index[1], s.num_nodes, torch.long),
    "add_self_loops": lambda s: gnn.SimpleConv()(s.x, U.add_self_loops(s.g.edge_index, num_nodes=s.num_nodes)[0]),
    "remove_self_loops": lambda s: gnn.SimpleConv()(s.x, U.remove_self_loops(s.g.edge_index)[0]),
    "add_remaining_self_loops": lambda s: gnn.SimpleConv()(
        s.x, U.add_remaining_self_loops(s.g.edge_index, num_nodes=s.num_nodes)[0]
    ),
    "to_undirected": lambda s: gnn.SimpleConv()(s.x, U.to_undirected(s.g.edge_index)),
    "coalesce": lambda s: gnn.SimpleConv()(s.x, U.coalesce(s.g.edge_index)),
    "is_undirected": lambda s: U.is_undirected(s.g.edge_index),
    "contains_self_loops": lambda s: U.contains_self_loops(s.g.edge_index),
    "contains_isolated_nodes": lambda s: U.contains_isolated_nodes(s.g.edge_index, s.num_nodes),
    "homophily": lambda s: U.homophily(s.g.edge_index, s.y),
    "homophily of nodes": lambda s: U.homophily(s.g.edge_index, s.y, method="node"),
    "homophily insensitive": lambda s: U.homophily(s.g.edge_index, s.y, method="edge_insensitive"),
    "assortativity": lambda s: U.assortativity(s.g.edge_index),
    "softmax": lambda s: U.softmax(s.x[s.g.edge_index[0]], s.g.edge_index[1], num_nodes=s.num_nodes).sum(),
    "scatter": lambda s: U.scatter(s.x[s.g.edge_index[0]], s.g.edge_index[1], 0, s.num_nodes, "mean"),
    "scatter max": lambda s: U.scatter(s.x[s.g.edge_index[0]], s.g.edge_index[1], 0, s.num_nodes, "max"),
    "scatter by labels": lambda s: U.scatter(s.x, s.y, 0, NUM_CLASSES, "sum"),
    "to_dense_adj": lambda s: U.to_dense_adj(s.g.edge_index, max_num_nodes=s.num_nodes)[0],
    "to_dense_batch": lambda s: U.to_dense_batch(s.x)[0][0],
    "to_scipy": lambda s: U.to_scipy_sparse_matrix(s.g.edge_index, num_nodes=s.num_nodes).sum(1),
    "to_networkx": lambda s: U.to_networkx(s.g).number_of_edges(),
    "get_laplacian": lambda s: gnn.SimpleConv()(s.x, *U.get_laplacian(s.g.edge_index, num_nodes=s.num_nodes)),
    "k_hop_subgraph": lambda s: U.k_hop_subgraph([3], 2, s.g.edge_index, num_nodes=s.num_nodes)[0],
    "subgraph": lambda s: U.subgraph(s.ids.train, s.g.edge_index, num_nodes=s.num_nodes)[0],
    "subgraph of a mask": lambda s: gnn.SimpleConv()(s.x, U.subgraph(s.train_mask, s.g.edge_index)[0]),
    "index_to_mask": lambda s: s.x[U.index_to_mask(s.ids.train, s.num_nodes)],
    "mask_to_index": lambda s: s.x[U.mask_to_index(s.train_mask)],
    "one_hot": lambda s: U.one_hot(s.y, NUM_CLASSES),
    "to_edge_index": lambda s: U.to_torch_csr_tensor(s.g.edge_index).to_dense().sum(0),
    "spmm": lambda s: U.spmm(s.g.edge_index, s.x),
    "sort_edge_index": lambda s: gnn.SimpleConv()(s.x, U.sort_edge_index(s.g.edge_index)),
    "maybe_num_nodes": lambda s: U.num_nodes.maybe_num_nodes(s.g.edge_index) > 0,
    "dense_to_sparse": lambda s: U.dense_to_sparse((s.x @ s.x.t() > 3).double())[0],
    "tree_decomposition": lambda s: U.cumsum(s.y),
    "flow reversed": lambda s: gnn.SimpleConv()(s.x, s.g.edge_index.flip(0)),
    "both directions": lambda s: gnn.SimpleConv()(s.x, torch.cat([s.g.edge_index, s.g.edge_index.flip(0)], 1)),
    "stacked rows": lambda s: gnn.SimpleConv()(s.x, torch.stack([s.g.edge_index[1], s.g.edge_index[0]])),
    "arcs counted": lambda s: (s.g.edge_index[0] == s.g.edge_index[1]).sum(),
    "arcs chosen": lambda s: gnn.SimpleConv()(s.x, s.g.edge_index[:, s.g.edge_weight > 1]),
    "sparse adjacency": lambda s: (
        torch.sparse_coo_tensor(s.g.edge_index, torch.ones(s.g.edge_index.size(1)), (s.num_nodes, s.num_nodes)) @ s.x
    ),
    "arcs to a list": lambda s: len(s.g.edge_index.t().tolist()),
    "arcs to numpy": lambda s: s.g.edge_index.numpy().shape[1],
    "largest id": lambda s: int(s.g.edge_index.max()) + 1,
    "arcs between classes": lambda s: (s.y[s.g.edge_index[0]] == s.y[s.g.edge_index[1]]).double().mean(),
    "confusion of arcs": lambda s: torch.bincount(
        s.y[s.g.edge_index[0]] * NUM_CLASSES + s.y[s.g.edge_index[1]], minlength=NUM_CLASSES**2
    ),
}
calls(UTILS, UTILS_CALLS)
