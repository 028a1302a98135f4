"""Norms whose statistics are those of all vertices, on any number of ranks: forward and backward.

Statistics are sums over owned rows of all ranks, divided by the number of vertices of the whole graph. A norm within
a row (`torch.nn.LayerNorm`) needs none of this.
"""

from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.errors import InputError
from distgnn.nn.conv.graph_module import GraphModule
from distgnn.nn.protocol import DataGraph
from distgnn.ops.entry import opaque
from distgnn.rows import RowTensor, local_of


def graph_mean(graph: DataGraph, rows: torch.Tensor) -> torch.Tensor:
    """Mean over all vertices of the whole graph of `rows` [O, D]: [D]. Collective: yes, and again backward.

    Of rows of all ranks (`distgnn.rows`) the mean over those that they are, a masked part of vertices for example.

    Raises: InputError for an ordinary tensor that has no row of each vertex of this rank.
    """
    if isinstance(rows, RowTensor):
        return local_of(rows.mean(0))
    if len(rows) != graph.num_rows:
        raise InputError(
            f"a norm over all vertices got {len(rows)} rows, and this rank has {graph.num_rows}: give it a row of each "
            "vertex, or load the graph without plain_tensors"
        )
    return ops.all_sum(graph, rows[: graph.num_owned].sum(0)) / graph.num_global_nodes


class BatchNorm1d(GraphModule, nn.modules.batchnorm._NormBase):
    """`torch.nn.BatchNorm1d` over the vertices of the whole graph.

    Collective: in training, and again in the backward pass.

    Args: num_features, eps, momentum, affine, track_running_stats: as in torch, and the same names in `state_dict`.

    Shape: [O, D] to the same.

    Notes: running statistics are the same on every rank; the running variance is the unbiased one, as in torch.

    Example:
        >>> norm = dg.nn.distribute(dg.nn.BatchNorm1d(8), graph)
        >>> abs(norm(graph.feats).mean().item()) < 1e-6
        True
    """

    @opaque
    def forward(self, rows: torch.Tensor, graph: DataGraph | None = None) -> torch.Tensor:
        """`graph` may be left out after `distgnn.nn.distribute(model, graph)`."""
        if rows.dim() != 2 or rows.shape[1] != self.num_features:
            raise ValueError(f"rows are {tuple(rows.shape)}: expected [rows, {self.num_features}]")
        if not self.training and self.running_mean is not None and self.running_var is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            mean, variance = self._statistics(self.graph_of(graph), rows)
        out = (rows - mean) * torch.rsqrt(variance + self.eps)
        return out if self.weight is None else out * self.weight + self.bias

    def _statistics(self, graph: DataGraph, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean = graph_mean(graph, rows)
        variance = graph_mean(graph, (rows - mean).square())
        if self.training and self.track_running_stats:
            count = len(rows) if isinstance(rows, RowTensor) else graph.num_global_nodes
            self._track(mean.detach(), variance.detach(), count)
        return mean, variance

    @torch.no_grad()
    def _track(self, mean: torch.Tensor, variance: torch.Tensor, count: int) -> None:
        counted: Any = self.num_batches_tracked
        counted += 1
        share = 1 / float(counted) if self.momentum is None else self.momentum
        of_mean: Any = self.running_mean
        of_variance: Any = self.running_var
        of_mean.lerp_(mean, share)
        of_variance.lerp_(variance * count / max(count - 1, 1), share)


class GraphNorm(GraphModule):
    """y = weight (x - mean_scale mean) / std + bias, with mean and std over all vertices; mean_scale is learned.

    Collective: yes, and again in the backward pass.

    Args: in_channels: width; eps: added to the variance.

    Shape: [O, in_channels] to the same.

    Source: Cai et al., ICML'21; parameter names as `torch_geometric.nn.GraphNorm`.

    Example:
        >>> norm = dg.nn.distribute(dg.nn.GraphNorm(graph.num_feats), graph)
        >>> norm(graph.feats).shape
        torch.Size([60, 8])
    """

    def __init__(self, in_channels: int, eps: float = 1e-5):
        super().__init__()
        self.in_channels, self.eps = in_channels, eps
        self.weight = nn.Parameter(torch.ones(in_channels))
        self.bias = nn.Parameter(torch.zeros(in_channels))
        self.mean_scale = nn.Parameter(torch.ones(in_channels))

    @opaque
    def forward(self, rows: torch.Tensor, graph: DataGraph | None = None) -> torch.Tensor:
        """`graph` may be left out after `distgnn.nn.distribute(model, graph)`."""
        graph = self.graph_of(graph)
        out = rows - self.mean_scale * graph_mean(graph, rows)
        return self.weight * out * torch.rsqrt(graph_mean(graph, out.square()) + self.eps) + self.bias


class PairNorm(GraphModule):
    """Rows are centred over all vertices and scaled to one mean squared length, or each to one length.

    Collective: yes, and again in the backward pass.

    Args: scale: the length; scale_individually: give each row that length; eps: added to squared lengths.

    Shape: [O, D] to the same.

    Source: Zhao and Akoglu, ICLR'20; arguments and arithmetic as `torch_geometric.nn.PairNorm`.

    Example:
        >>> norm = dg.nn.distribute(dg.nn.PairNorm(), graph)
        >>> norm(graph.feats).shape
        torch.Size([60, 8])
    """

    def __init__(self, scale: float = 1.0, scale_individually: bool = False, eps: float = 1e-5):
        super().__init__()
        self.scale, self.scale_individually, self.eps = scale, scale_individually, eps

    @opaque
    def forward(self, rows: torch.Tensor, graph: DataGraph | None = None) -> torch.Tensor:
        """`graph` may be left out after `distgnn.nn.distribute(model, graph)`."""
        graph = self.graph_of(graph)
        rows = rows - graph_mean(graph, rows)
        if self.scale_individually:
            return self.scale * rows / (self.eps + rows.norm(2, -1, keepdim=True))
        return self.scale * rows / (self.eps + graph_mean(graph, rows.square().sum(-1, keepdim=True))).sqrt()
