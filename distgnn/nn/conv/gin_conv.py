"""Graph isomorphism convolutions (GIN, GINE) with DGL's arguments and parameter names."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import nn

from distgnn import ops
from distgnn.config import check_choice
from distgnn.nn.conv.graph_module import Fusion
from distgnn.ops.aggregation.convolve import Plan, choose_plan
from distgnn.ops.function import GraphView, is_alone, is_watched, multiplies, opaque, runs_as
from distgnn.ops.rowwise.chain import Rows, enter, leave, tensor_of
from distgnn.ops.rowwise.sparse_rows import SparseRows

AGGREGATORS = ("sum", "mean", "max")


class GINConv(nn.Module):
    """y[v] = f((1 + eps) x[v] + aggregate over arcs (u -> v) of x[u]).

    Args:
        apply_func: f, any module of rows, or None.
        aggregator_type: "sum", "mean" or "max".
        init_eps, learn_eps: eps, and whether it is learned.
        activation: applied last.

    Shape: [O, D] to what `apply_func` makes of it.

    Source: Xu et al., ICLR'19; parameter names as `dgl.nn.GINConv` 1.1.3.

    Example:
        >>> layer = dg.nn.GINConv(torch.nn.Linear(graph.num_feats, 4))
        >>> layer(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    apply_func: nn.Module | None
    aggregator_type: str
    activation: Callable[..., Any] | None

    def __init__(
        self,
        apply_func: nn.Module | None = None,
        aggregator_type: str = "sum",
        init_eps: float = 0.0,
        learn_eps: bool = False,
        activation: Callable[..., Any] | None = None,
    ):
        super().__init__()
        check_choice("aggregator_type", aggregator_type, AGGREGATORS)
        self.apply_func, self.aggregator_type, self.activation = apply_func, aggregator_type, activation
        self.eps: torch.Tensor
        _set_eps(self, init_eps, learn_eps)

    @opaque
    def forward(
        self,
        graph: GraphView,
        feat: torch.Tensor,
        edge_weight: torch.Tensor | None = None,
        fusion: Fusion | None = None,
    ) -> torch.Tensor:
        """With `fusion`, where `may_fuse`, what follows runs in the same functions; kept: the sum, after ReLU, z."""
        if fusion is not None:
            first, _, last = cast(Any, self.apply_func)
            weight = None if edge_weight is None else edge_weight.reshape(-1)
            rows, matrix = enter(graph, feat), first.weight.T
            is_sparse = isinstance(tensor_of(rows), SparseRows)
            if not is_sparse and choose_plan(graph, rows, *matrix.shape) is Plan.PRODUCT_FIRST:
                rows, matrix = ops.linear(graph, rows, matrix), None  # the narrower row is the one that travels
            rows = ops.with_neighbours(graph, rows, self.eps, weight)
            rows = ops.linear(graph, rows, matrix, first.bias, epilogue=ops.Epilogue(relu=True))
            rows = ops.linear(graph, rows, last.weight.T, last.bias, epilogue=fusion.epilogue, norm=fusion.norm)
            return rows if isinstance(feat, Rows) else leave(rows)
        op = "copy_lhs" if edge_weight is None else "mul"
        out = (1 + self.eps) * feat + ops.gspmm(graph, op, self.aggregator_type, feat, edge_weight)
        out = out if self.apply_func is None else self.apply_func(out)
        return out if self.activation is None else self.activation(out)

    def may_fuse(self) -> bool:
        """Is f two linear layers around a ReLU, after a sum, and does nobody look at what is in between?"""
        function: Any = self.apply_func
        if not runs_as(self, GINConv):
            return False
        inner = [] if type(function) is not nn.Sequential else [*function]
        if [type(one) for one in inner] != [nn.Linear, nn.ReLU, nn.Linear] or any(map(is_watched, [function, *inner])):
            return False
        if not (is_alone(function) and is_alone(inner[1]) and multiplies(inner[0]) and multiplies(inner[2])):
            return False
        return self.aggregator_type == "sum" and self.activation is None


class GINEConv(nn.Module):
    """y[v] = f((1 + eps) x[v] + sum over arcs (u -> v) of relu(x[u] + e[arc])).

    Args: apply_func: f, any module of rows, or None; init_eps, learn_eps: eps, and whether it is learned.

    Shape: rows [O, D] and edge features [A, D], of one width, to what `apply_func` makes of [O, D].

    Notes: memory: D numbers per arc.

    Source: Hu et al., ICLR'20; parameter names as `dgl.nn.GINEConv` 1.1.3.

    Example:
        >>> layer = dg.nn.GINEConv(torch.nn.Linear(graph.num_feats, 4))
        >>> messages = torch.nn.Linear(3, graph.num_feats)(graph.edata["feat"])
        >>> layer(graph, graph.feats, messages).shape
        torch.Size([60, 4])
    """

    def __init__(self, apply_func: nn.Module | None = None, init_eps: float = 0.0, learn_eps: bool = False):
        super().__init__()
        self.apply_func = apply_func
        self.eps: torch.Tensor
        _set_eps(self, init_eps, learn_eps)

    @opaque
    def forward(self, graph: GraphView, node_feat: torch.Tensor, edge_feat: torch.Tensor) -> torch.Tensor:
        messages = torch.relu(ops.to_arcs(graph, node_feat, "source") + edge_feat)
        out = (1 + self.eps) * node_feat + ops.from_arcs(graph, messages)
        return out if self.apply_func is None else self.apply_func(out)


def _set_eps(layer: nn.Module, value: float, learned: bool) -> None:
    eps = torch.tensor([float(value)])
    if learned:
        layer.register_parameter("eps", nn.Parameter(eps))
    else:
        layer.register_buffer("eps", eps)
