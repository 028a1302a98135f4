"""What hidden layers keep for the backward pass, in hidden tensors [O, W]: the floors of docs/internals/memory.md."""

from functools import partial

import pytest
import torch
from cut_graphs import random_graph, whole_graph

from distgnn.config import ModelConfig
from distgnn.nn import SAGEConv, model_for
from distgnn.nn.models.build import STACKS
from distgnn.ops import Buffers, buffers, with_neighbours
from distgnn.ops.rowwise import products
from distgnn.ops.rowwise.chain import enter

NODES, WIDTH = 2100, 128  # a hidden tensor is over 1 MB: smaller ones do not come from the graph's buffers
EACH = {"sage": 1, "gcn": 1, "gat": 2, "gin": 3, "gcn2": 2, "appnp": 1, "gatv2": 3}


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


@pytest.mark.parametrize("norm", ["none", "layer", "pair"])  # pair: as batch and graph
@pytest.mark.parametrize("name", EACH)
def test_a_hidden_layer_keeps_one_tensor_for_itself_and_the_layer_behind(name, norm):
    graph = whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")
    models = [model_for(ModelConfig(name, WIDTH, layers, norm=norm), graph).train() for layers in (3, 5)]
    kept = [kept_tensors(graph, model) for model in models]
    assert kept[1] - kept[0] <= 2 * (EACH[name] + 0.2)  # and weights


@pytest.mark.parametrize("norm", ["none", "layer", "pair"])
@pytest.mark.parametrize("name", ["sage", "gcn"])
def test_with_remat_the_first_layer_keeps_nothing_and_gradients_have_the_same_bits(name, norm):
    graph = whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")
    models = [model_for(ModelConfig(name, WIDTH, 3, norm=norm, remat=remat), graph).train() for remat in (False, True)]
    kept = [kept_tensors(graph, model) for model in models]
    assert kept[1] <= kept[0] - 0.8  # a tensor; weights and sums of narrow features take its place
    assert same_gradients(graph, models)


@pytest.mark.parametrize("name", ["sage", "gcn"])
def test_with_remat_the_last_hidden_rows_are_never_whole_and_may_go_back_twice(name, monkeypatch):
    graph = whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")
    monkeypatch.setattr(products, "OVER_ROWS", 256)
    monkeypatch.setattr(buffers, "SMALL", 1)
    kind, outputs, most, grads = STACKS[name], WIDTH // 3, [], []
    torch.manual_seed(0)
    models = [kind(graph.num_feats, WIDTH, outputs, 3, remat=remat).train() for remat in (False, True)]
    models[1].load_state_dict(models[0].state_dict())
    draws = graph.random_keys.draws()
    for model in models:
        graph.buffers = SeenBuffers()
        graph.random_keys.set_draws(draws)
        loss = model(graph, graph.feats).square().sum()
        most.append(graph.buffers.most / (NODES * WIDTH * graph.dtype.itemsize))
        grads.append(torch.autograd.grad(loss, list(model.parameters()), retain_graph=True))
    assert all(map(torch.equal, *grads))
    assert most[0] > 3  # z of two layers, and one at work
    assert most[1] < 2.2  # one less, while the second layer is at work; and weights
    assert all(map(torch.equal, grads[1], torch.autograd.grad(loss, list(model.parameters()))))


@pytest.mark.parametrize(("name", "most"), [("gin", (7.5, 4.5)), ("gat", (4.8, 3.7))])
def test_hidden_rows_at_work_are_few_and_with_remat_in_both_passes(name, most, monkeypatch):
    graph = whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")
    monkeypatch.setattr(products, "OVER_ROWS", 256)
    monkeypatch.setattr(buffers, "SMALL", 1)
    models, found = [STACKS[name](graph.num_feats, WIDTH, 16, 3, remat=remat).train() for remat in (False, True)], []
    for model in models:
        graph.buffers = SeenBuffers()
        loss = model(graph, graph.feats).square().sum()
        if model.remat:
            loss.backward()
        found.append(graph.buffers.most / (NODES * WIDTH * graph.dtype.itemsize))
    assert all(one < bound for one, bound in zip(found, most, strict=True)), found
    assert same_gradients(graph, models)


def test_the_last_layer_of_gat_calls_hooks_on_it():
    graph = whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")
    model = STACKS["gat"](graph.num_feats, WIDTH, 8, 3).train()
    seen = []
    model.convs[-1].register_forward_hook(lambda _, given, out: seen.append(out.shape))
    model(graph, graph.feats)
    assert seen == [(NODES, 4, 8)]


def same_gradients(graph, models) -> bool:
    """Whether models with the same weights have the same gradients, to the bit."""
    models[1].load_state_dict(models[0].state_dict())
    grads, draws = [], graph.random_keys.draws()
    for model in models:
        graph.random_keys.set_draws(draws)  # the same masks
        loss = model(graph, graph.feats).square().sum()
        grads.append(torch.autograd.grad(loss, list(model.parameters())))
    return all(map(torch.equal, *grads))


def look_before(model) -> None:
    model.convs[-1].register_forward_pre_hook(lambda _, given: (given[0], given[1].tanh()))


LAST = {
    "a hook before it": look_before,
    "a dropout of its own": lambda model: setattr(model.convs[-1].feat_drop, "p", 0.5),
    "an activation": lambda model: setattr(model.convs[-1], "activation", torch.tanh),
    "another aggregation": lambda model: model.convs.__setitem__(-1, SAGEConv(WIDTH, 8, "pool")),
}


@pytest.mark.parametrize("change", LAST)
def test_with_remat_the_last_layer_may_be_any(change):
    """What it does beside a mean of its rows is not passed over, and needs them."""
    graph = whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")
    torch.manual_seed(0)
    models = [STACKS["sage"](graph.num_feats, WIDTH, 8, 3, remat=remat).train() for remat in (False, True)]
    for model in models:
        LAST[change](model)
    assert same_gradients(graph, models)


@pytest.mark.parametrize("name", ["gat", "gin"])
def test_with_remat_a_layer_that_is_made_again_makes_no_rows_that_nobody_reads(name):
    graph = whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")
    models = [model_for(ModelConfig(name, WIDTH, 3, remat=remat), graph).train() for remat in (False, True)]
    made = []

    def seen(hidden, *given):
        out = hidden(*given)
        made.extend([out.tensor.untyped_storage().nbytes()] if given[3:] == (True,) else [])
        return out

    for model in models:
        model._hidden_layer = partial(seen, model._hidden_layer)
    assert same_gradients(graph, models)
    assert made == [graph.dtype.itemsize] * 2


@pytest.mark.parametrize(("name", "norm"), [("sage", "layer"), ("gin", "layer"), ("gcn2", "pair"), ("gat", "layer")])
def test_rows_that_are_written_over_are_made_again(name, norm):
    graph = whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")
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


def test_rows_with_neighbours_are_made_again_in_their_own_dtype():
    """The next layer's backward pass multiplies them."""
    graph = whole_graph(random_graph(1, num_nodes=NODES), dtype="float32")
    feats = enter(graph, graph.feats.bfloat16())
    out = with_neighbours(graph, feats, torch.full((1,), 0.3, requires_grad=True))
    again = out.slot.again[:7]
    assert again.dtype == out.dtype == torch.bfloat16 and torch.equal(again, out.tensor[:7])
