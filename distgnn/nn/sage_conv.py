"""GraphSAGE convolution with DGL's arguments and parameter names."""

from collections.abc import Callable

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.dropout import Dropout


class SAGEConv(nn.Module):
    """y[v] = fc_self(x[v]) + fc_neigh(mean over arcs (u -> v) of x[u]); "gcn": fc_neigh(mean over u and v itself).

    Args:
        in_feats, out_feats: widths.
        aggregator_type: "mean" or "gcn".
        feat_drop: dropout on the input.
        bias: learn one.
        norm, activation: applied last, activation first.

    Shape: [O, in_feats] to [O, out_feats].

    Notes:
        A mean divides by the in-degree in the whole graph. The sum commutes with the product: rows that never
        change are aggregated first and kept, others are transformed first where the layer narrows.

    Source: Hamilton et al., NeurIPS'17; parameter names as `dgl.nn.SAGEConv` 1.1.3.
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        aggregator_type: str = "mean",
        feat_drop: float = 0.0,
        bias: bool = True,
        norm: Callable | None = None,
        activation: Callable | None = None,
    ):
        super().__init__()
        if aggregator_type not in ("mean", "gcn"):
            raise ValueError(f"unknown aggregator_type {aggregator_type!r}: choose mean or gcn")
        self.in_feats, self.out_feats, self.aggregator_type = in_feats, out_feats, aggregator_type
        self.feat_drop = Dropout(feat_drop)
        self.norm, self.activation = norm, activation
        self.fc_neigh = nn.Linear(in_feats, out_feats, bias=False)
        if aggregator_type == "mean":
            self.fc_self = nn.Linear(in_feats, out_feats, bias=bias)
        else:
            self.bias = nn.Parameter(torch.zeros(out_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform weights with the gain of ReLU, as DGL draws them."""
        gain = nn.init.calculate_gain("relu")
        nn.init.xavier_uniform_(self.fc_neigh.weight, gain=gain)
        if self.aggregator_type == "mean":
            nn.init.xavier_uniform_(self.fc_self.weight, gain=gain)

    def forward(self, graph, feat: torch.Tensor, edge_weight: torch.Tensor | None = None) -> torch.Tensor:
        feat = self.feat_drop(feat, graph)
        offset = 1 if self.aggregator_type == "gcn" else 0
        scale = graph.degree_scale("in", -1, offset)
        if self.in_feats > self.out_feats and not graph.is_input(feat):
            rows = self.fc_neigh(feat)
            neigh = self._neighbours(graph, rows, edge_weight, scale)
        else:
            neigh = self.fc_neigh(self._neighbours(graph, feat, edge_weight, scale))
        out = neigh + self.fc_self(feat) if self.aggregator_type == "mean" else self._with_bias(neigh)
        out = out if self.activation is None else self.activation(out)
        return out if self.norm is None else self.norm(out)

    def _neighbours(self, graph, rows, edge_weight, scale) -> torch.Tensor:
        total = ops.spmm(graph, rows, edge_weight, target_scale=scale)
        if self.aggregator_type == "gcn":
            total = total + rows * torch.from_numpy(scale.owned)[:, None]
        return total

    def _with_bias(self, rows: torch.Tensor) -> torch.Tensor:
        return rows if self.bias is None else rows + self.bias
