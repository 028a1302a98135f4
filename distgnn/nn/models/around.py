"""What stands around the convolutions of a stack: norm, ReLU and dropout, linear layers."""

from collections.abc import Callable
from typing import Any, TypeGuard

import torch
from torch import nn

from distgnn import ops
from distgnn.config import NORMS, check_choice
from distgnn.nn.conv.graph_module import NOT_FUSED, Fusion, GraphModule
from distgnn.nn.dropout import Dropout
from distgnn.nn.norms import BatchNorm1d, ColumnNorm, GraphNorm, PairNorm
from distgnn.ops.function import OF_GRADIENTS, GraphView, is_seen, is_watched, multiplies, runs_as
from distgnn.ops.rowwise.chain import enter, leave


def make_norms(norm: str, width: int, count: int) -> nn.ModuleList | None:
    check_choice("norm", norm, NORMS)
    makers = {
        "layer": lambda: nn.LayerNorm(width),
        "batch": lambda: BatchNorm1d(width),
        "graph": lambda: GraphNorm(width),
        "pair": PairNorm,
    }
    return None if norm == "none" else nn.ModuleList(makers[norm]() for _ in range(count))


def fused_layer(
    graph: GraphView,
    run: Callable[..., Any],
    norm: nn.Module | None,
    drop: Any,
    remat: bool = False,
    own: torch.Tensor | None = None,
) -> Any:
    """`run(fusion=...)` with norm, ReLU and dropout; where somebody watches one of them, by their own calls."""
    if _is_plain_dropout(drop) and (norm is None or _is_plain_layer_norm(norm)):
        parameters = None if norm is None else (norm.weight, norm.bias)
        epilogue = drop.epilogue(graph, 1e-5 if norm is None else norm.eps)
        return run(fusion=Fusion(epilogue, parameters, remat, own))
    return normed_and_activated(graph, norm, enter(graph, run(fusion=NOT_FUSED._replace(remat=remat, own=own))), drop)


def fused_linear(module: Any, graph: GraphView, feats: Any, fusion: Fusion) -> Any:
    """A linear layer and what follows it in one function; where somebody watches the layer, by its own call."""
    if is_watched(module) or not multiplies(module):
        feats, weight, bias = enter(graph, module(leave(feats, alone=not is_watched(module, OF_GRADIENTS)))), None, None
    else:
        weight, bias = module.weight.T, module.bias
    return ops.linear(graph, feats, weight, bias, epilogue=fusion.epilogue, norm=fusion.norm)


def normed_and_activated(graph: GraphView, norm: nn.Module | None, rows: Any, drop: Any) -> Any:
    """Norm (None: without), ReLU and dropout of a convolution's rows [O, D]."""
    if _is_plain_dropout(drop):
        if isinstance(norm, ColumnNorm) and norm.is_step and not is_seen(norm):
            return norm.followed(rows, graph, drop.epilogue(graph))
        if _is_plain_layer_norm(norm):
            return ops.linear(graph, rows, None, epilogue=drop.epilogue(graph, norm.eps), norm=(norm.weight, norm.bias))
    rows = normed(graph, norm, leave(rows, alone=True))
    return ops.activate(graph, rows, drop.epilogue(graph)) if _is_plain_dropout(drop) else drop(rows.relu(), graph)


def _is_plain_dropout(drop: Any) -> bool:
    """Is it ours, which nobody watches?"""
    return runs_as(drop, Dropout) and not is_seen(drop)


def _is_plain_layer_norm(norm: Any) -> TypeGuard[nn.LayerNorm]:
    """Is it torch's own, which nobody watches?"""
    return type(norm) is nn.LayerNorm and not is_seen(norm)


def normed(graph: GraphView, norm: nn.Module | None, rows: torch.Tensor) -> torch.Tensor:
    if norm is None:
        return rows
    return norm(rows, graph) if isinstance(norm, GraphModule) else norm(rows)


class FeedForward(nn.Module):
    """Linear, dropout, GELU, linear: what a vertex does with its own rows.

    Shape: [O, in_feats] to [O, out_feats].

    Source: Platonov et al., ICLR'23.
    """

    def __init__(self, in_feats: int, out_feats: int, dropout: float):
        super().__init__()
        self.first, self.last = nn.Linear(in_feats, out_feats), nn.Linear(out_feats, out_feats)
        self.drop = Dropout(dropout)

    def forward(self, rows: torch.Tensor, graph: GraphView) -> torch.Tensor:
        return self.last(nn.functional.gelu(self.drop(self.first(rows), graph)))
