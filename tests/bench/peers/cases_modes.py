"""Changes in place, and torch's modes."""

import copy
import io

import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
from cases import calls, case, expressions, trainings
from torch import nn
from torch.utils.checkpoint import checkpoint
from worlds import NUM_CLASSES, WIDTH

PLACE = "changes in place"
MODES = "torch's modes"


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
            "infinities replaced": lambda s, x: _set(x, x.detach() == float("inf"), 0.0),
            "normalised in place": lambda s, x: x.div_(x.detach().norm(dim=1, keepdim=True)),
            "labels changed": lambda s, x: F.cross_entropy(x, s.y.clone().clamp_(max=2)),
            "mask changed": lambda s, x: x * s.train_mask.clone().logical_not_().unsqueeze(1),
            "mask and ids": lambda s, x: x[s.train_mask.clone().index_fill_(0, s.ids.valid, True)],
        }.items()
    },
)


def _entropy(s, out):
    return F.cross_entropy(out[s.train_mask], s.y[s.train_mask])


class Two(nn.Module):
    """Two GCN layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = gnn.GCNConv(WIDTH, 8), gnn.GCNConv(8, NUM_CLASSES)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def _loss(s, model):
    return _entropy(s, model(s.x, s.g.edge_index))


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
