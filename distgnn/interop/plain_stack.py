"""What plain models of DGL and of PyG have in common: the order of layers in `distgnn.nn`'s stacks, of torch's modules.

Parameter names are those of `distgnn.nn.models`. The libraries' own layers are in `dgl/export.py` and `pyg/export.py`.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import nn

from distgnn.config import ModelConfig
from distgnn.interop.run_model import GraphSizes

Make = Callable[[], nn.Module]


class Hidden(Protocol):
    """A model with hidden layers: norm, ReLU and dropout behind each."""

    norms: nn.ModuleList | None
    drop: nn.Dropout


class Stack(Hidden, Protocol):
    """A model that is a stack of convolutions."""

    config: ModelConfig
    convs: nn.ModuleList
    read: nn.Linear | None


def conv_widths(config: ModelConfig, sizes: GraphSizes, in_feats: int) -> list[tuple[int, int, bool]]:
    """(in, out, whether it gives the logits) of each convolution; with jumps all of them are hidden layers."""
    if config.jump != "none":
        widths = [in_feats] + [config.hidden_feats] * config.num_layers
        return [(*pair, False) for pair in pairwise(widths)]
    pairs = list(pairwise(_widths(config, sizes, in_feats)))
    return [(*pair, layer == len(pairs) - 1) for layer, pair in enumerate(pairs)]


def num_hidden(config: ModelConfig) -> int:
    """Convolutions of a stack that are hidden layers."""
    return config.num_layers - (config.jump == "none")


def make_reader(config: ModelConfig, sizes: GraphSizes) -> nn.Linear | None:
    """The linear layer that reads the hidden layers; None without jumps."""
    if config.jump == "none":
        return None
    return nn.Linear(config.hidden_feats * (config.num_layers if config.jump == "cat" else 1), sizes.num_classes)


def run_stack(model: Stack, rows: torch.Tensor, convolve: Callable[[Any, torch.Tensor, bool], Any]) -> torch.Tensor:
    """Logits of a stack; `convolve(conv, rows, last)` is one convolution of the whole graph."""
    hidden = []
    for layer, conv in enumerate(model.convs):
        if model.read is None and layer == len(model.convs) - 1:
            break
        out = run_hidden(model, layer, convolve(conv, rows, False))
        rows = out + rows if model.config.residual and out.shape == rows.shape else out
        hidden.append(rows)
    if model.read is None:
        logits: torch.Tensor = convolve(model.convs[-1], rows, True)
        return logits
    return model.read(torch.cat(hidden, 1) if model.config.jump == "cat" else torch.stack(hidden).amax(0))


def run_hidden(model: Hidden, layer: int, rows: torch.Tensor) -> torch.Tensor:
    """Norm, ReLU and dropout of a hidden layer."""
    return model.drop(torch.relu(rows if model.norms is None else model.norms[layer](rows)))


def make_linears(config: ModelConfig, sizes: GraphSizes) -> nn.ModuleList:
    """The layers of a multi-layer perceptron, which APPNP propagates."""
    return nn.ModuleList(nn.Linear(*pair) for pair in pairwise(_widths(config, sizes, sizes.num_feats)))


def run_linears(model: Hidden, linears: nn.ModuleList, rows: torch.Tensor) -> torch.Tensor:
    """Logits of a multi-layer perceptron."""
    for layer, linear in enumerate(list(linears)[:-1]):
        rows = run_hidden(model, layer, linear(rows))
    logits: torch.Tensor = linears[-1](rows)
    return logits


def two_layers(in_feats: int, out_feats: int) -> nn.Sequential:
    """The perceptron inside gin and gine."""
    return nn.Sequential(nn.Linear(in_feats, out_feats), nn.ReLU(), nn.Linear(out_feats, out_feats))


def make_norms(config: ModelConfig, count: int, graph_norm: Callable[[int], Any], pair_norm: Make) -> Any:
    """One norm for each of `count` hidden layers, or None; torch has no norm "graph" and no "pair"."""
    width = config.hidden_feats
    makers: dict[str, Make] = {
        "layer": lambda: nn.LayerNorm(width),
        "batch": lambda: nn.BatchNorm1d(width),
        "graph": lambda: graph_norm(width),
        "pair": pair_norm,
    }
    return None if config.norm == "none" else nn.ModuleList(makers[config.norm]() for _ in range(count))


class TypedInputs(nn.Module):
    """A linear layer for vertices of each type, and ReLU."""

    def __init__(self, sizes: GraphSizes, width: int):
        super().__init__()
        count = max(sizes.num_node_types, 1)
        self.types: nn.ModuleList = nn.ModuleList(nn.Linear(sizes.num_feats, width) for _ in range(count))

    def forward(self, rows: torch.Tensor, types: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Rows [N, D] of vertices of these types [N], which are asked for only where there are several."""
        first, *others = self.types
        out = first(rows)
        for number, layer in enumerate(others, 1):
            chosen = torch.nonzero(types() == number).view(-1)
            out = out.index_copy(0, chosen, layer(rows[chosen]))
        return torch.relu(out)


def with_labels(rows: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor, num_classes: int) -> torch.Tensor:
    """Rows with the labels of the masked vertices as further columns, as label reuse has them in prediction."""
    columns = rows.new_zeros(len(rows), num_classes)
    chosen = labels[mask]
    columns[mask] = (chosen if labels.dim() == 2 else nn.functional.one_hot(chosen, num_classes)).to(rows)
    return torch.cat([rows, columns], 1)


def _widths(config: ModelConfig, sizes: GraphSizes, in_feats: int) -> Iterable[int]:
    return [in_feats] + [config.hidden_feats] * (config.num_layers - 1) + [sizes.num_classes]
