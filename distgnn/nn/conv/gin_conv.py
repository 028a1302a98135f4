"""Graph isomorphism convolution (GIN) with DGL's arguments and parameter names."""

from collections.abc import Callable

import torch
from torch import nn

from distgnn import ops
from distgnn.config import check_choice
from distgnn.ops.entry import opaque

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

    def __init__(
        self,
        apply_func: nn.Module | None = None,
        aggregator_type: str = "sum",
        init_eps: float = 0.0,
        learn_eps: bool = False,
        activation: Callable | None = None,
    ):
        super().__init__()
        check_choice("aggregator_type", aggregator_type, AGGREGATORS)
        self.apply_func, self.aggregator_type, self.activation = apply_func, aggregator_type, activation
        eps = torch.tensor([float(init_eps)])
        if learn_eps:
            self.eps = nn.Parameter(eps)
        else:
            self.register_buffer("eps", eps)

    @opaque
    def forward(
        self, graph: ops.GraphView, feat: torch.Tensor, edge_weight: torch.Tensor | None = None
    ) -> torch.Tensor:
        op = "copy_lhs" if edge_weight is None else "mul"
        out = (1 + self.eps) * feat + ops.gspmm(graph, op, self.aggregator_type, feat, edge_weight)
        out = out if self.apply_func is None else self.apply_func(out)
        return out if self.activation is None else self.activation(out)
