"""Graph convolution (GCN) with DGL's arguments and parameter names."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.conv.graph_module import check_in_arcs
from distgnn.nn.edge_weight_norm import constant
from distgnn.nn.fusion import NOT_FUSED, Fusion
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView

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
        return self.activation is None

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
