"""Norm, ReLU, dropout and linear layers that somebody watches run by their own calls, and give the same numbers."""

from types import SimpleNamespace

import pytest
import torch
from cut_graphs import random_graph, whole_graph

from distgnn.config import EDGE_MODELS, ModelConfig
from distgnn.nn import model_for


@pytest.mark.parametrize(
    ("name", "norm"),
    [
        *[("gcn2", "layer"), ("gcn2", "batch"), ("appnp", "layer"), ("gatv2", "layer"), ("gat", "pair")],
        *[("sage", "graph"), ("sage", "layer"), ("gcn", "layer"), ("gin", "none"), ("appnp", "none")],
    ],
)
def test_watched_layers_give_the_same(name, norm):
    graph, found, seen = whole_graph(random_graph(1)), [], set()
    model = model_for(ModelConfig(name, 8, 3, norm=norm, dropout=0.0), graph).double().train()
    for _ in range(2):
        logits = model(graph, graph.feats)
        found.append([logits, *torch.autograd.grad(logits.square().sum(), list(model.parameters()))])
        for module in model.modules():
            module.register_forward_hook(lambda module, given, out: seen.add(module))
    torch.testing.assert_close(*found)
    assert seen == {module for module in model.modules() if not isinstance(module, torch.nn.ModuleList)}


@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("before", [False, True])
def test_a_hook_that_changes_rows_is_not_passed_over(norm, before):
    """Zeros behind (or before) the norm and the dropout of the hidden layer leave the bias of the last layer alone."""
    graph = whole_graph(random_graph(1))
    for place in ("norms", "drops"):
        model = model_for(ModelConfig("sage", 8, 2, norm=norm, dropout=0.5), graph).double().train()
        module = getattr(model, place)[0]
        if before:
            module.register_forward_pre_hook(lambda module, given: (torch.zeros_like(given[0]), *given[1:]))
        else:
            module.register_forward_hook(lambda module, given, out: torch.zeros_like(out))
        logits = model(graph, graph.feats)
        torch.testing.assert_close(logits, model.convs[-1].fc_self.bias.expand_as(logits))


class Doubled(torch.nn.Linear):
    def forward(self, rows):
        return 2 * super().forward(rows)


def doubled(linear, how: str) -> None:
    """Give twice what a linear layer gives: by its numbers, or by what kernels that read these would pass over."""
    if how == "numbers":
        linear.weight.data *= 2
        if linear.bias is not None:
            linear.bias.data *= 2
    elif how == "hook":
        linear.register_forward_hook(lambda module, given, out: 2 * out)
    elif how == "weight by a hook":  # as torch.nn.utils.prune does
        linear.weight_orig, weight = linear.weight, linear.weight
        del linear.weight
        linear.weight = weight.detach()
        linear.register_forward_pre_hook(lambda module, given: setattr(module, "weight", 2 * module.weight_orig))
        doubled(SimpleNamespace(weight=torch.nn.Parameter(torch.ones(1)), bias=linear.bias), "numbers")
    elif how == "own forward":
        linear.forward = lambda rows, run=linear.forward: 2 * run(rows)
    else:
        linear.__class__ = Doubled


@pytest.mark.parametrize("how", ["hook", "weight by a hook", "own forward", "class"])
@pytest.mark.parametrize("name", ["sage", "gat", "gatv2", "gin", "gcn2", "edgegat", "gine"])
def test_a_linear_layer_inside_that_is_changed_is_called(name, how):
    graph, found = whole_graph(random_graph(1, typed=name in EDGE_MODELS)), []
    for one in ("numbers", how):
        torch.manual_seed(0)
        options = {"residual": "linear", "block": "residual"} if name in ("sage", "gat", "gatv2", "gin") else {}
        model = model_for(ModelConfig(name, 8, 2, norm="layer", dropout=0.0, **options), graph).double().train()
        for linear in [module for module in model.modules() if type(module) is torch.nn.Linear]:
            doubled(linear, one)
        found.append(model(graph, graph.feats))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("place", ["class", "object"])
@pytest.mark.parametrize("name", ["sage", "gcn", "gin", "gat", "gatv2"])
def test_a_forward_pass_of_ones_own_is_called(name, place):
    """Of the last layer, and of a dropout."""
    graph = whole_graph(random_graph(1))
    model = model_for(ModelConfig(name, 8, 2, norm="layer", dropout=0.5), graph).double().train()
    last, drop, seen = model.convs[-1], model.drops[0], []
    convolve, mask = type(last).forward, type(drop).forward

    def ones(self, *args, **kwargs):
        return torch.ones_like(convolve(self, *args, **kwargs))

    def watched(self, rows, *args):
        seen.append(rows)
        return mask(self, rows, *args)

    for module, run in ((last, ones), (drop, watched)):
        if place == "class":
            module.__class__ = type("Own", (type(module),), {"forward": run})
        else:
            module.forward = run.__get__(module)
    assert (model(graph, graph.feats) == 1).all() and seen


def test_a_layer_norm_of_ones_own_is_called():
    class Halves(torch.nn.LayerNorm):
        def forward(self, rows):
            return super().forward(rows) / 2

    graph, found = whole_graph(random_graph(1)), []
    for kind, scale in ((torch.nn.LayerNorm, 0.5), (Halves, 1.0)):
        model = model_for(ModelConfig("gcn", 8, 2, norm="layer", dropout=0.0), graph).double()
        model.norms[0] = kind(8).double()
        model.norms[0].weight.data *= scale
        model.convs[0].weight.data.fill_(0.1).add_(torch.arange(8) / 10)
        model.convs[1].weight.data.fill_(0.3)
        found.append(model(graph, graph.feats))
    torch.testing.assert_close(*found)
