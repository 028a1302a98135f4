"""GraphSAGE convolution with DGL's arguments and parameter names."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.config import check_choice
from distgnn.nn.conv.graph_module import NOT_FUSED, Fusion, constant
from distgnn.nn.dropout import Dropout
from distgnn.ops.function import GraphView, is_alone, multiplies, opaque, runs_as

AGGREGATORS = ("mean", "gcn", "pool")


class SAGEConv(nn.Module):
    """y[v] = fc_self(x[v]) + fc_neigh(mean over arcs (u -> v) of x[u]).

    "gcn": fc_neigh(mean over all u and v itself);  "pool": instead of the mean, max over u of relu(fc_pool(x[u])).

    Args:
        in_feats, out_feats: widths.
        aggregator_type: "mean", "gcn" or "pool".
        feat_drop: dropout on the input.
        bias: learn one.
        norm, activation: applied last, activation first.

    Shape: [O, in_feats] to [O, out_feats].

    Notes:
        A mean divides by the in-degree in the whole graph. The sum commutes with the product: rows that never
        change are aggregated first and kept, others are transformed first where the layer narrows.

    Source: Hamilton et al., NeurIPS'17; parameter names as `dgl.nn.SAGEConv` 1.1.3.

    Example:
        >>> layer = dg.nn.SAGEConv(graph.num_feats, 4)
        >>> layer(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    in_feats: int
    out_feats: int
    aggregator_type: str
    norm: Callable[..., Any] | None
    activation: Callable[..., Any] | None

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        aggregator_type: str = "mean",
        feat_drop: float = 0.0,
        bias: bool = True,
        norm: Callable[..., Any] | None = None,
        activation: Callable[..., Any] | None = None,
    ):
        super().__init__()
        check_choice("aggregator_type", aggregator_type, AGGREGATORS)
        self.in_feats, self.out_feats, self.aggregator_type = in_feats, out_feats, aggregator_type
        self.feat_drop: Dropout = Dropout(feat_drop)
        self.norm, self.activation = norm, activation
        self.fc_pool: nn.Linear | None = nn.Linear(in_feats, in_feats) if aggregator_type == "pool" else None
        self.fc_neigh: nn.Linear = nn.Linear(in_feats, out_feats, bias=False)
        if aggregator_type != "gcn":
            self.fc_self: nn.Linear = nn.Linear(in_feats, out_feats, bias=bias)
        else:
            self.bias: nn.Parameter | None = nn.Parameter(torch.zeros(out_feats)) if bias else None
        self.reset_parameters()

    @property
    def is_plain(self) -> bool:
        """Does it do nothing but what `forward` with `fusion` does?"""
        drops = self.feat_drop.p or not is_alone(self.feat_drop)
        usual = runs_as(self, SAGEConv) and self._is_one_product
        return usual and self.norm is None and self.activation is None and not drops

    @property
    def _is_one_product(self) -> bool:
        return self.aggregator_type == "mean" and multiplies(self.fc_neigh) and multiplies(self.fc_self)

    def reset_parameters(self) -> None:
        """Xavier-uniform weights with the gain of ReLU, as DGL draws them."""
        gain = nn.init.calculate_gain("relu")
        for layer in (self.fc_neigh, self.fc_pool, getattr(self, "fc_self", None)):
            if layer is not None:
                nn.init.xavier_uniform_(layer.weight, gain=gain)

    @opaque
    def forward(
        self,
        graph: GraphView,
        feat: torch.Tensor,
        edge_weight: torch.Tensor | None = None,
        fusion: Fusion | None = None,
    ) -> torch.Tensor:
        """With `fusion`, of mean aggregation, what follows runs in the same function: see `ops.convolve`."""
        if fusion is None:
            feat = self.feat_drop(feat, graph)
        is_gcn = self.aggregator_type == "gcn"
        if fusion is not None or (self._is_one_product and feat.dim() == 2 and constant(edge_weight)):
            after = fusion or NOT_FUSED
            spec = after.of((None, graph.degree_scale("in", -1)), edge_weight)
            mine = self.fc_self.weight.T if after.own is None else self.fc_self.weight.T + after.own
            out = ops.convolve(graph, feat, self.fc_neigh.weight.T, mine, self.fc_self.bias, spec, after.norm)
            if fusion is not None:
                return out
        else:
            if self.fc_pool is not None:
                op = "copy_lhs" if edge_weight is None else "mul"
                rows = torch.relu(self.fc_pool(feat))
                out = self.fc_neigh(ops.gspmm(graph, op, "max", rows, edge_weight))
            else:
                scale = graph.degree_scale("in", -1, 1 if is_gcn else 0)
                first = graph.narrows(self.in_feats, self.out_feats) and not graph.is_input(feat)
                rows = self.fc_neigh(feat) if first else feat
                out = ops.spmm(graph, rows, edge_weight, target_scale=scale)
                out = out + rows * torch.from_numpy(scale.owned)[:, None] if is_gcn else out
                out = out if first else self.fc_neigh(out)
            del rows
            own = self.bias if is_gcn else self.fc_self(feat)
            out = out if own is None else out + own
        out = out if self.activation is None else self.activation(out)
        return out if self.norm is None else self.norm(out)
