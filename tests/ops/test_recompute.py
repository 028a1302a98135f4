"""What is kept for the backward pass, in hidden tensors [O, W], and what is made again: docs/internals/memory.md."""

import sys

import pytest
import torch
from cut_graphs import random_graph, whole_graph

from distgnn.config import ModelConfig
from distgnn.nn import model_for
from distgnn.nn.models.build import STACKS
from distgnn.ops import Buffers, buffers
from distgnn.ops.recompute import saved_in

NODES, WIDTH = 2100, 128  # a hidden tensor is over 1 MB: smaller ones do not come from the graph's buffers
EACH = {"sage": 1, "gcn": 1, "gat": 2, "gin": 3, "gcn2": 2, "appnp": 1, "gatv2": 3}


def hidden_graph():
    return whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")


class SeenBuffers(Buffers):
    """Buffers that say whether memory is theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.places: set[int] = set()
        self.most = 0  # bytes in use at once

    def empty(self, num_rows: int, width: int, dtype: torch.dtype) -> torch.Tensor:
        made = super().empty(num_rows, width, dtype)
        self.places.add(made.data_ptr())
        self.most = max(self.most, self.used_bytes)
        return made


def kept_tensors(graph, model) -> float:
    """Memory that waits for the backward pass: buffers in use, and what else torch saves."""
    graph.buffers = SeenBuffers()
    elsewhere: dict[int, int] = {}

    def saved(one: torch.Tensor) -> torch.Tensor:
        if one.data_ptr() not in graph.buffers.places and one is not graph.feats:
            elsewhere[one.data_ptr()] = one.numel() * one.itemsize
        return one

    with torch.autograd.graph.saved_tensors_hooks(saved, lambda one: one):
        logits = model(graph, graph.feats)
    assert logits.requires_grad
    return (graph.buffers.used_bytes + sum(elsewhere.values())) / (NODES * WIDTH * graph.dtype.itemsize)


@pytest.mark.parametrize(
    ("name", "norm", "remat"),
    [
        *((name, norm, False) for name in EACH for norm in ("none", "layer", "pair")),  # pair: as batch and graph
        *((name, "layer", True) for name in ("gin", "gat")),  # a layer that is made again keeps its input alone
    ],
)
def test_a_hidden_layer_keeps_one_tensor_for_itself_and_the_layer_behind(name, norm, remat):
    graph, expected = hidden_graph(), 1 if remat else EACH[name] + 0.2  # and weights
    kept = [
        kept_tensors(graph, model_for(ModelConfig(name, WIDTH, layers, norm=norm, remat=remat), graph).train())
        for layers in (3, 5)
    ]
    assert kept[1] - kept[0] <= 2 * expected + 0.1 * remat


@pytest.mark.parametrize("norm", ["none", "layer", "pair"])
@pytest.mark.parametrize("name", ["sage", "gcn"])
def test_with_remat_the_first_layer_keeps_nothing_and_gradients_have_the_same_bits(name, norm):
    graph = hidden_graph()
    models = [model_for(ModelConfig(name, WIDTH, 3, norm=norm, remat=remat), graph).train() for remat in (False, True)]
    kept = [kept_tensors(graph, model) for model in models]
    assert kept[1] <= kept[0] - 0.8  # a tensor; weights and sums of narrow features take its place
    assert same_gradients(graph, models)


@pytest.mark.parametrize("name", ["sage", "gcn"])
def test_with_remat_a_backward_pass_may_run_twice(name):
    graph = hidden_graph()
    model = STACKS[name](graph.num_feats, WIDTH, 8, 3, remat=True).train()
    loss = model(graph, graph.feats).square().sum()
    twice = [torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for _ in range(2)]
    assert all(map(torch.equal, *twice))


@pytest.mark.parametrize(("name", "most"), [("gin", (6.7, 6.2)), ("gat", (5.7, 5.2))])
def test_hidden_rows_at_work_are_few_and_with_remat_fewer(name, most, monkeypatch):
    graph = hidden_graph()
    monkeypatch.setattr(buffers, "SMALL", 1)
    models, found = [STACKS[name](graph.num_feats, WIDTH, 8, 3, remat=remat).train() for remat in (False, True)], []
    for model in models:
        graph.buffers = SeenBuffers()
        model(graph, graph.feats).square().sum().backward()
        found.append(graph.buffers.most / (NODES * WIDTH * graph.dtype.itemsize))
    assert all(one < bound for one, bound in zip(found, most, strict=True)), found
    assert same_gradients(graph, models)


def same_gradients(graph, models) -> bool:
    """Whether models with the same weights have the same gradients, to the bit."""
    models[1].load_state_dict(models[0].state_dict())
    grads, draws = [], graph.random_keys.draws()
    for model in models:
        graph.random_keys.set_draws(draws)  # the same masks
        loss = model(graph, graph.feats).square().sum()
        grads.append(torch.autograd.grad(loss, list(model.parameters())))
    return all(map(torch.equal, *grads))


@pytest.mark.parametrize(("name", "norm"), [("sage", "layer"), ("gin", "layer"), ("gcn2", "pair"), ("gat", "layer")])
def test_rows_that_are_written_over_are_made_again(name, norm):
    graph = hidden_graph()
    model = model_for(ModelConfig(name, WIDTH, 4, norm=norm, dropout=0.0), graph).train()
    loss = model(graph, graph.feats).square().sum()
    twice = [torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for _ in range(2)]
    seen = []
    for conv in model.convs:  # who looks at a layer has its rows kept
        conv.register_forward_hook(lambda module, given, out: seen.append((given[1], given[1].clone())))
    watched = torch.autograd.grad(model(graph, graph.feats).square().sum(), list(model.parameters()))
    assert all(torch.equal(now, then) for now, then in seen)
    for grads in (twice[1], watched):
        torch.testing.assert_close(grads, twice[0], rtol=1e-4, atol=1e-4)


def test_rows_that_torch_keeps_wait_too_and_must_not_be_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["distgnn.ops.recompute"], "SMALL", 256)
    monkeypatch.setattr("distgnn.ops.buffers.SMALL", 256)
    buffers = Buffers(str(tmp_path))
    feats, gradients = torch.randn(200, 8), []
    for pool in (Buffers(), buffers):
        weight = torch.ones(8, 8, requires_grad=True)
        with saved_in(pool):
            rows = feats
            for _ in range(6):
                rows = torch.sigmoid(rows @ weight)
        rows.sum().backward()
        gradients.append(weight.grad)
    assert torch.equal(*gradients) and buffers.disk.moved_bytes > 0
    with saved_in(buffers):
        kept = buffers.empty(200, 8, torch.float32).fill_(1).requires_grad_()
        out = (kept * kept).sum()
    with torch.no_grad():
        kept.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()
