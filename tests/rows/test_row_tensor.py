"""Modes of torch around a model of PyG on rows of P ranks: equal to plain PyG on one process, or one line."""

import pytest
import torch
import torch.nn.functional as F
from pyg_layers import Doubled
from row_scenes import scenes
from torch import distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

from distgnn.errors import InputError
from distgnn.rows import RowTensor

pytest.importorskip("torch_geometric")
from torch_geometric.nn import GATConv, GCNConv


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = GCNConv(8, 8), nn.BatchNorm1d(8), GATConv(8, 4)

    def forward(self, x, edge_index):
        return self.second(F.relu(self.norm(self.first(x, edge_index))), edge_index)


def backward(s, out):
    F.cross_entropy(out[s.m], s.y[s.m]).backward()
    return out


def twice(s, model):
    out = model(s.x, s.e)
    loss = F.cross_entropy(out[s.m], s.y[s.m]) + 0.1 * sum(one.norm() for one in model.parameters())
    loss.backward(retain_graph=True)
    loss.backward()
    return out


def compiled_in_place(s, model):
    model.compile(backend="eager")
    return backward(s, model(s.x, s.e))


def compiled_step(s, model):
    torch.compile(lambda: backward(s, model(s.x, s.e)), backend="eager")()
    return model(s.x, s.e)


MODES = {  # others: the kind "torch's modes" in tests/interop/test_peers.py
    "a second pass and a penalty": twice,
    "module.compile": compiled_in_place,
    "a compiled step": compiled_step,
}
REFUSED = {
    "reentrant checkpoint": (
        lambda s, model: backward(s, checkpoint(F.relu, model(s.x, s.e), use_reentrant=True)),
        "use_reentrant=False",
    ),
    "own function": (lambda s, model: backward(s, Doubled.apply(model(s.x, s.e))), "gradient would be lost"),
    "module's backward hook": (
        lambda s, model: model.norm.register_full_backward_hook(lambda *_: None) and model(s.x, s.e),
        "gradient would be lost",
    ),
}


def model_of(seed=0):
    torch.manual_seed(seed)
    return Model().double()


def run(scene, mode):
    model = model_of()
    out = mode(scene, model)
    found = {"out": out.whole() if isinstance(out, RowTensor) else out}
    found |= {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
    found |= dict(model.named_buffers())
    return {name: one.detach() for name, one in found.items()}


@pytest.mark.mpi(3, timeout=600)  # kernels of many kinds are compiled
@pytest.mark.filterwarnings("ignore")  # of torch's compiler
def test_modes_are_equal(comm):
    whole, rows = scenes(comm)
    for name, mode in MODES.items():
        expected, found = run(whole, mode), run(rows, mode)
        assert expected.keys() == found.keys(), name
        for key, value in expected.items():
            torch.testing.assert_close(
                found[key], value, rtol=1e-9, atol=1e-9, msg=lambda text, at=f"{name}, {key}: ": at + text
            )


NARROW = {torch.bfloat16: 2**-6, torch.float16: 2**-9}  # two or three roundings
OF_ROWS = {
    "model": lambda s, x, model: model(x, s.e),
    "mean": lambda s, x, model: x.mean(0),
    "deviation": lambda s, x, model: x.std(0),
    "softmax": lambda s, x, model: x.softmax(0) + x.logsumexp(0) + x.max(0).values,
    "ids": lambda s, x, model: F.dropout(x, 0.5, False)[torch.tensor([40, 3, 3])],
    "loss": lambda s, x, model: F.cross_entropy(x[s.m], s.y[s.m]),
}


@pytest.mark.mpi(1, 3)
def test_narrow_rows_and_models_are_right_up_to_rounding(comm):
    whole, rows = scenes(comm)

    def of(s, run, dtype, narrow):
        x, model = s.x.to(narrow).to(dtype).requires_grad_(), model_of().to(narrow).to(dtype)
        out = run(s, x, model)
        out.float().square().sum().backward()
        found = [out.detach(), x.grad, *(one.grad for one in model.parameters())]
        return [one.whole() if isinstance(one, RowTensor) else one for one in found if one is not None]

    for dtype, tolerance in NARROW.items():
        for name, run in OF_ROWS.items():
            exact, plain, found = (
                of(whole, run, torch.float64, dtype),
                of(whole, run, dtype, dtype),
                of(rows, run, dtype, dtype),
            )
            for value, theirs, ours in zip(exact, plain, found, strict=True):
                most = max(tolerance * max(value.abs().max(), 1), 2 * (theirs.double() - value).abs().max())
                assert ours.dtype == dtype and (ours.double() - value).abs().max() <= most, f"{name} {dtype}"
    F.dropout(rows.x.half(), 0.5).sum().item()


@pytest.mark.mpi(1, 2)
def test_what_would_lose_a_gradient_is_one_line(comm):
    _, rows = scenes(comm)
    for name, (mode, says) in REFUSED.items():
        with pytest.raises(InputError, match=says) as error:
            mode(rows, model_of())
        assert "\n" not in str(error.value), name


@pytest.mark.mpi(2)
def test_ddp_is_to_be_left_out(comm):
    _, rows = scenes(comm)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(InputError, match="leave DistributedDataParallel"):
            nn.parallel.DistributedDataParallel(model_of())(rows.x, rows.e)
    finally:
        dist.destroy_process_group()


@pytest.mark.mpi(2)
def test_an_ordinary_loss_is_not_added_to_one_of_all_ranks(comm):
    _, rows = scenes(comm)
    model = model_of()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    backward(rows, model(rows.x, rows.e))
    sum(one.norm() for one in model.parameters()).backward()
    with pytest.raises(Exception, match="add the losses"):
        optimizer.step()
