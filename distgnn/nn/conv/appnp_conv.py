"""Propagation by personalised PageRank (APPNP) with DGL's arguments."""

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.dropout import Dropout
from distgnn.nn.edge_weight_norm import normalized_weight, scales_of
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView


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
            if self.training and self.edge_drop.p > 0:
                ones = feat.new_ones(graph.num_edges(), 1) if weight is None else weight[:, None]
                arcs = self.edge_drop(ones, graph)[:, 0]
            feat = ops.mixed(graph, feat, initial, self.alpha, arcs, scales)
        return feat
