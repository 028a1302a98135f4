"""Graph convolutions (GCN, GCNII, APPNP) with DGL's arguments and parameter names."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.errors import InputError
from distgnn.nn.conv.graph_module import NOT_FUSED, Fusion, check_in_arcs, constant
from distgnn.nn.dropout import Dropout
from distgnn.ops.function import GraphView, is_alone, opaque, runs_as

NORMS = ("both", "right", "left", "none")


class GraphConv(nn.Module):
    """y[v] = bias + sum over arcs (u -> v) of x[u] W / c(u, v).

    c = sqrt(out_degree(u) in_degree(v)) for norm "both", in_degree(v) for "right", out_degree(u) for "left", else 1;
    degrees are in the whole graph.

    Args:
        in_feats, out_feats: widths.
        norm: "both", "right", "left" or "none".
        weight, bias: learn them.
        activation: applied last.
        allow_zero_in_degree: let vertices without in-arcs have the bias alone; else they are an error, as in DGL.

    Shape: [O, in_feats] to [O, out_feats].

    Source: Kipf and Welling, ICLR'17; parameter names as `dgl.nn.GraphConv` 1.1.3.

    Example:
        >>> layer = dg.nn.GraphConv(graph.num_feats, 4)
        >>> layer(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    in_feats: int
    out_feats: int
    allow_zero_in_degree: bool
    activation: Callable[..., Any] | None

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        norm: str = "both",
        weight: bool = True,
        bias: bool = True,
        activation: Callable[..., Any] | None = None,
        allow_zero_in_degree: bool = False,
    ):
        super().__init__()
        if norm not in NORMS:
            raise ValueError(f"unknown norm {norm!r}: choose from {', '.join(NORMS)}")
        self.in_feats, self.out_feats, self.norm = in_feats, out_feats, norm
        self.activation, self.allow_zero_in_degree = activation, allow_zero_in_degree
        self.weight: nn.Parameter | None = nn.Parameter(torch.empty(in_feats, out_feats)) if weight else None
        self.bias: nn.Parameter | None = nn.Parameter(torch.empty(out_feats)) if bias else None
        self.reset_parameters()

    @property
    def is_plain(self) -> bool:
        """Does it do nothing but what `forward` with `fusion` does?"""
        return self.activation is None and runs_as(self, GraphConv)

    def reset_parameters(self) -> None:
        if self.weight is not None:
            nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @opaque
    def forward(
        self,
        graph: GraphView,
        feat: torch.Tensor,
        weight: torch.Tensor | None = None,
        edge_weight: torch.Tensor | None = None,
        fusion: Fusion | None = None,
    ) -> torch.Tensor:
        """With `fusion`, without activation, what follows runs in the same function: see `ops.convolve`."""
        check_in_arcs(self, graph, ", whose output would be the bias alone")
        if weight is not None and self.weight is not None:
            raise ValueError("a weight was given but the layer has its own: make it with weight=False")
        if weight is None and self.weight is None and fusion is not None:
            raise ValueError("this GraphConv was made with weight=False: it cannot be fused with what follows it")
        weight = self.weight if weight is None else weight
        power = -0.5 if self.norm == "both" else -1
        source = graph.degree_scale("out", power) if self.norm in ("both", "left") else None
        target = graph.degree_scale("in", power) if self.norm in ("both", "right") else None
        if weight is not None and (fusion is not None or (feat.dim() == 2 and constant(edge_weight))):
            after = fusion or NOT_FUSED
            spec = after.of((source, target), edge_weight)
            out = ops.convolve(graph, feat, weight, after.own, self.bias, spec, after.norm)
            return out if fusion is not None or self.activation is None else self.activation(out)
        if weight is not None and graph.narrows(self.in_feats, self.out_feats) and not graph.is_input(feat):
            out = ops.spmm(graph, ops.plain_product(graph, feat, weight), edge_weight, source, target)
        else:
            out = ops.spmm(graph, feat, edge_weight, source, target)
            out = out if weight is None else ops.plain_product(graph, out, weight)
        out = out if self.bias is None else out + self.bias
        return out if self.activation is None else self.activation(out)


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
            product = torch.lerp(torch.eye(self.in_feats, dtype=self.weight1.dtype), self.weight1, self.beta)
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


class APPNPConv(nn.Module):
    """k times: x <- (1 - alpha) P x + alpha x0, with P = D_in^-1/2 A D_out^-1/2.

    Args:
        k: steps.
        alpha: share of the initial rows.
        edge_drop: dropout on arcs, a new mask in every step.

    Shape: [O, D] to the same.

    Source: Gasteiger et al., ICLR'19; arguments as `dgl.nn.APPNPConv` 1.1.3.

    Example:
        >>> propagate = dg.nn.APPNPConv(k=3, alpha=0.1)
        >>> propagate(graph, graph.feats).shape
        torch.Size([60, 8])
    """

    k: int
    alpha: float

    def __init__(self, k: int, alpha: float, edge_drop: float = 0.0):
        super().__init__()
        self.k, self.alpha = k, alpha
        self.edge_drop: Dropout = Dropout(edge_drop, over="arcs")

    @opaque
    def forward(self, graph: GraphView, feat: torch.Tensor, edge_weight: torch.Tensor | None = None) -> torch.Tensor:
        weight = None if edge_weight is None else normalized_weight(graph, edge_weight)
        initial, scales = feat, scales_of(graph, weight, "out")
        for _ in range(self.k):
            arcs = weight
            if (self.training and self.edge_drop.p > 0) or not is_alone(self.edge_drop):
                ones = feat.new_ones(graph.num_edges(), 1) if weight is None else weight[:, None]
                arcs = self.edge_drop(ones, graph)[:, 0]
            feat = ops.mixed(graph, feat, initial, self.alpha, arcs, scales)
        return feat


def normalized_weight(graph: GraphView, edge_weight: torch.Tensor) -> torch.Tensor:
    """w(u, v) / sqrt(sum of weights out of u * sum of weights into v), of every local arc [A].

    Collective: yes, and again in the backward pass.

    Raises: InputError for a weight that is not positive.

    Source: `dgl.nn.EdgeWeightNorm("both")` 1.1.3.
    """
    weight = edge_weight.reshape(-1)
    if not bool((weight > 0).all()):
        row = int((weight <= 0).long().argmax())
        raise InputError(
            f"edge weights must be positive to be divided by the root of their sums: that of arc {row} of this rank is "
            f"{float(weight[row])}"
        )
    ends = [ops.to_arcs(graph, ops.from_arcs(graph, weight, role).rsqrt(), role) for role in ("source", "target")]
    return weight * ends[0] * ends[1]


def scales_of(graph: GraphView, weight: torch.Tensor | None, source_kind: str) -> tuple[Any, ...]:
    """What D^-1/2 A D^-1/2 multiplies sources and targets by: nothing where weights are normalised already.

    Args: source_kind: which degree divides at the source, "in" or "out".
    """
    if weight is not None:
        return None, None
    return graph.degree_scale(source_kind, -0.5), graph.degree_scale("in", -0.5)
