"""Graph isomorphism convolution (GIN) with DGL's arguments and parameter names."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import nn

from distgnn import ops
from distgnn.config import check_choice
from distgnn.nn.fusion import Fusion
from distgnn.ops.aggregation.convolve import Plan, choose_plan
from distgnn.ops.entry import is_watched, opaque
from distgnn.ops.graph_view import GraphView
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
        eps = torch.tensor([float(init_eps)])
        if learn_eps:
            self.eps: nn.Parameter = nn.Parameter(eps)
        else:
            self.register_buffer("eps", eps)

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
            more: Any = {"epilogue": fusion.epilogue, "norm": fusion.norm, "is_unread": fusion.is_unread}
            rows = ops.linear(graph, rows, last.weight.T, last.bias, **more)
            return rows if isinstance(feat, Rows) else leave(rows)
        op = "copy_lhs" if edge_weight is None else "mul"
        out = (1 + self.eps) * feat + ops.gspmm(graph, op, self.aggregator_type, feat, edge_weight)
        out = out if self.apply_func is None else self.apply_func(out)
        return out if self.activation is None else self.activation(out)

    def may_fuse(self) -> bool:
        """Is f two linear layers around a ReLU, after a sum, and does nobody look at what is in between?"""
        function: Any = self.apply_func
        inner = [] if type(function) is not nn.Sequential else [*function]
        if [type(one) for one in inner] != [nn.Linear, nn.ReLU, nn.Linear] or any(map(is_watched, [function, *inner])):
            return False
        return self.aggregator_type == "sum" and self.activation is None
