"""Graph convolution with initial residual and identity mapping (GCNII), DGL's arguments and parameter names."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.conv.graph_module import check_in_arcs
from distgnn.nn.edge_weight_norm import normalized_weight, scales_of
from distgnn.nn.fusion import NOT_FUSED, Fusion
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView


class GCN2Conv(nn.Module):
    """h = (1 - alpha) P x + alpha x0;  y = (1 - beta) h + beta h W1,  beta = log(lambda_ / layer + 1).

    P divides messages by the roots of the in-degrees of both ends. Without `project_initial_features` the two parts of
    h have weights of their own: beta ((1 - alpha) P x W1 + alpha x0 W2).

    Args:
        in_feats: width.
        layer: number of this layer, from 1.
        alpha, lambda_: share of the initial rows, strength of the weight.
        project_initial_features, bias, activation, allow_zero_in_degree: as in DGL.

    Shape: [O, in_feats] and initial rows [O, in_feats] to [O, in_feats].

    Source: Chen et al., ICML'20; parameter names as `dgl.nn.GCN2Conv` 1.1.3.

    Example:
        >>> layer = dg.nn.GCN2Conv(graph.num_feats, layer=1)
        >>> layer(graph, graph.feats, graph.feats).shape
        torch.Size([60, 8])
    """

    in_feats: int
    alpha: float
    beta: float
    allow_zero_in_degree: bool
    activation: Callable[..., Any] | None

    def __init__(
        self,
        in_feats: int,
        layer: int,
        alpha: float = 0.1,
        lambda_: float = 1,
        project_initial_features: bool = True,
        allow_zero_in_degree: bool = False,
        bias: bool = True,
        activation: Callable[..., Any] | None = None,
    ):
        super().__init__()
        self.in_feats, self.alpha, self.beta = in_feats, alpha, math.log(lambda_ / layer + 1)
        self.activation, self.allow_zero_in_degree = activation, allow_zero_in_degree
        self.weight1: nn.Parameter = nn.Parameter(torch.empty(in_feats, in_feats))
        self.weight2: nn.Parameter | None = (
            None if project_initial_features else nn.Parameter(torch.empty(in_feats, in_feats))
        )
        self.bias: nn.Parameter | None = nn.Parameter(torch.empty(in_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal weights, zero bias, as DGL draws them."""
        for weight in (self.weight1, self.weight2):
            if weight is not None:
                nn.init.normal_(weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @opaque
    def forward(
        self,
        graph: GraphView,
        feat: torch.Tensor,
        feat_0: torch.Tensor,
        edge_weight: torch.Tensor | None = None,
        fusion: Fusion | None = None,
    ) -> torch.Tensor:
        """With `fusion`, and without weight2 and activation, norm and what follows run with the product."""
        check_in_arcs(self, graph)
        weight = None if edge_weight is None else normalized_weight(graph, edge_weight)
        if self.weight2 is None and graph.factor_recorder is None:  # which is told of products with weight1
            scales = scales_of(graph, weight, "in")
            after = fusion or NOT_FUSED
            total = ops.mixed(graph, feat, feat_0, self.alpha, weight, scales)
            identity = torch.eye(self.in_feats, dtype=self.weight1.dtype)
            product = (1 - self.beta) * identity + self.beta * self.weight1
            out = ops.linear(graph, total, product, self.bias, epilogue=after.epilogue, norm=after.norm)
            return out if self.activation is None else self.activation(out)
        feat = (1 - self.alpha) * ops.spmm(graph, feat, weight, *scales_of(graph, weight, "in"))
        feat_0 = self.alpha * feat_0
        total = feat + feat_0
        projected = ops.plain_product(graph, total if self.weight2 is None else feat, self.weight1)
        if self.weight2 is not None:
            projected = projected + ops.plain_product(graph, feat_0, self.weight2)
        out = (1 - self.beta) * total + self.beta * projected
        out = out if self.bias is None else out + self.bias
        if fusion is not None:
            return ops.linear(graph, out, None, epilogue=fusion.epilogue, norm=fusion.norm)
        return out if self.activation is None else self.activation(out)
