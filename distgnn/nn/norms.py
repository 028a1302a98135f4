"""Norms over all vertices on any number of ranks, forward and backward.

Statistics are sums over owned rows of all ranks, divided by the number of vertices of the whole graph. A norm within
a row (`torch.nn.LayerNorm`) needs none of this.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.errors import InputError
from distgnn.nn.conv.graph_module import GraphModule
from distgnn.ops.function import GraphView, opaque
from distgnn.ops.rowwise.column_norm import column_norm
from distgnn.rows import RowTensor, local_of


def graph_mean(graph: GraphView, rows: torch.Tensor) -> torch.Tensor:
    """Mean over all vertices of the whole graph of `rows` [O, D]: [D]. Collective: yes, and again backward.

    Of rows of all ranks (`distgnn.rows`) the mean over those that they are, a masked part of vertices for example.

    Raises: InputError for an ordinary tensor that has no row of each vertex of this rank.
    """
    if isinstance(rows, RowTensor):
        return local_of(rows.mean(0))
    _check_rows(graph, rows)
    return ops.all_sum(graph, rows[: graph.num_owned].sum(0)) / graph.num_global_nodes


def _check_rows(graph: GraphView, rows: torch.Tensor) -> None:
    if len(rows) != graph.num_rows:
        raise InputError(
            f"a norm over all vertices got {len(rows)} rows, and this rank has {graph.num_rows}: give it a row of each "
            "vertex, or load the graph without plain_tensors"
        )


class ColumnNorm(GraphModule):
    """Base of norms that are made of a mean and a mean square of each column.

    A subclass has `factors`. `forward` gives the norm alone, `followed` also what a stack lets follow.
    """

    def centre(self, mean: torch.Tensor, given: Sequence[torch.Tensor]) -> torch.Tensor:
        """c of `column_norm`, from the mean m; given: `column_parameters`."""
        return mean

    def factors(self, square: torch.Tensor, given: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """(s, b) of `column_norm`, from the mean square q."""
        raise NotImplementedError

    def column_parameters(self) -> list[torch.Tensor]:
        """What these functions read, in their order."""
        return []

    def fixed(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Statistics to use in place of the rows' own."""
        return None

    def seen(self, mean: torch.Tensor, square: torch.Tensor, count: int) -> None:
        """Take note of statistics [D] over `count` rows."""

    @property
    def is_step(self) -> bool:
        """Is it `column_norm` of rows?"""
        return True

    def check(self, rows: torch.Tensor) -> None:
        """Raise ValueError for rows of another shape than the norm is for."""

    @opaque
    def forward(self, rows: torch.Tensor, graph: GraphView | None = None) -> torch.Tensor:
        """`graph` may be left out after `distgnn.nn.distribute(model, graph)`."""
        return self.followed(rows, graph, ops.Epilogue())

    def followed(self, rows: torch.Tensor, graph: GraphView | None, epilogue: ops.Epilogue) -> torch.Tensor:
        """The norm of rows [O, D], ReLU and dropout. Collective: yes."""
        self.check(rows)
        fixed, parameters = self.fixed(), self.column_parameters()
        graph = self.graph_of(graph)
        if isinstance(rows, RowTensor):  # of all ranks, which may be a part of the vertices
            mean = graph_mean(graph, rows) if fixed is None else fixed[0]
            centred = rows - self.centre(mean, parameters)
            square = graph_mean(graph, centred.square()) if fixed is None else fixed[1]
            scale, offset = self.factors(square, parameters)
            if fixed is None:
                self.seen(mean.detach(), square.detach(), len(rows))
            return centred * scale + offset
        if fixed is None:
            _check_rows(graph, rows)
        out, mean, square = column_norm(graph, rows, self, parameters, fixed=fixed, epilogue=epilogue)
        if fixed is None:
            self.seen(mean, square, graph.num_global_nodes)
        return out


class BatchNorm1d(ColumnNorm, nn.modules.batchnorm._NormBase):
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

    def check(self, rows: torch.Tensor) -> None:
        if rows.dim() != 2 or rows.shape[1] != self.num_features:
            raise ValueError(f"rows are {tuple(rows.shape)}: expected [rows, {self.num_features}]")

    def factors(self, square: torch.Tensor, given: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        inverse = torch.rsqrt(square + self.eps)
        return (inverse * given[0], given[1]) if given else (inverse, torch.zeros_like(inverse))

    def column_parameters(self) -> list[torch.Tensor]:
        return [] if self.weight is None else [self.weight, self.bias]

    def fixed(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        if self.training or self.running_mean is None or self.running_var is None:
            return None
        return self.running_mean, self.running_var

    @torch.no_grad()
    def seen(self, mean: torch.Tensor, square: torch.Tensor, count: int) -> None:
        if not (self.training and self.track_running_stats):
            return
        counted: Any = self.num_batches_tracked
        counted += 1
        share = 1 / float(counted) if self.momentum is None else self.momentum
        of_mean: Any = self.running_mean
        of_variance: Any = self.running_var
        of_mean.lerp_(mean, share)
        of_variance.lerp_(square * count / max(count - 1, 1), share)


def batch_norm_like(norm: Any) -> BatchNorm1d:
    """Ours with the settings, parameters, buffers and mode of torch's or PyG's."""
    made = BatchNorm1d(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
    made._parameters, made._buffers = norm._parameters, norm._buffers
    return made.train(norm.training)


class GraphNorm(ColumnNorm):
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

    in_channels: int
    eps: float

    def __init__(self, in_channels: int, eps: float = 1e-5):
        super().__init__()
        self.in_channels, self.eps = in_channels, eps
        self.weight: nn.Parameter = nn.Parameter(torch.ones(in_channels))
        self.bias: nn.Parameter = nn.Parameter(torch.zeros(in_channels))
        self.mean_scale: nn.Parameter = nn.Parameter(torch.ones(in_channels))

    def centre(self, mean: torch.Tensor, given: Sequence[torch.Tensor]) -> torch.Tensor:
        return given[2] * mean

    def factors(self, square: torch.Tensor, given: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return given[0] * torch.rsqrt(square + self.eps), given[1]

    def column_parameters(self) -> list[torch.Tensor]:
        return [self.weight, self.bias, self.mean_scale]


class PairNorm(ColumnNorm):
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

    scale: float
    scale_individually: bool
    eps: float

    def __init__(self, scale: float = 1.0, scale_individually: bool = False, eps: float = 1e-5):
        super().__init__()
        self.scale, self.scale_individually, self.eps = scale, scale_individually, eps

    def followed(self, rows: torch.Tensor, graph: GraphView | None, epilogue: ops.Epilogue) -> torch.Tensor:
        if self.is_step:
            return super().followed(rows, graph, epilogue)
        graph = self.graph_of(graph)
        rows = rows - graph_mean(graph, rows)
        rows = self.scale * rows / (self.eps + rows.norm(2, -1, keepdim=True))
        return rows if epilogue.is_empty else ops.activate(graph, rows, epilogue)

    @property
    def is_step(self) -> bool:
        return not self.scale_individually

    def factors(self, square: torch.Tensor, given: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        factor = self.scale / (self.eps + square.sum()).sqrt()
        return factor.expand(len(square)), torch.zeros_like(square)
