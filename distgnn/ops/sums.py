"""Sums over ranks: `all_sum` with its gradient, and the plain ones that steer a run."""

from typing import Any

import numpy as np
import torch
from mpi4py import MPI

from distgnn.comm import Transport, extreme_over_ranks, sum_over_ranks
from distgnn.ops.entry import of_floats
from distgnn.ops.function import Function
from distgnn.ops.graph_view import GraphView


@of_floats
def all_sum(graph: GraphView, values: torch.Tensor) -> torch.Tensor:
    """Sum of `values` over all ranks, with gradient (statistics of norm layers, pooled losses).

    Collective: yes, and again in the backward pass.

    Example:
        >>> dg.ops.all_sum(graph, torch.tensor([1.0, 2.0]))
        WholeTensor([1., 2.])
    """
    return _AllSum.apply(values, graph.transport)


@of_floats
def all_max(graph: GraphView, values: torch.Tensor) -> torch.Tensor:
    """The largest of all values of all ranks, with gradient: equal ones share it, as in `torch.max`.

    Collective: yes, and again in the backward pass.

    Example:
        >>> dg.ops.all_max(graph, torch.tensor([1.0, 2.0]))
        WholeTensor(2.)
    """
    comm: Any = graph.transport.comm
    here = float(values.detach().max()) if values.numel() else float("-inf")
    most = float(extreme_over_ranks(comm, np.array([here]), "max")[0]) if comm.size > 1 else here
    top = torch.tensor(most, dtype=values.dtype)
    best = are_top(values.detach(), top)
    count = comm.allreduce(int(best.sum())) if comm.size > 1 else int(best.sum())
    return shared_by_top(all_sum(graph, torch.where(best, values, torch.zeros_like(values)).sum()), count, top)


def are_top(values: torch.Tensor, top: torch.Tensor) -> torch.Tensor:
    """Which of the values are the extreme `top`; of NaN, as torch has it where one value is NaN, all that are."""
    return (values == top) | ((values != values) & (top != top))


def shared_by_top(total: torch.Tensor, count: Any, top: torch.Tensor) -> torch.Tensor:
    """The extreme `top`, with the gradient of `total` / `count`: `count` equal values share it.

    Notes: the mean of equal numbers may differ from them in its last bit; of infinite ones a difference is no number.
    """
    mean = total / count
    return torch.where(top.isfinite(), mean + (top - mean.detach()), mean)


class _AllSum(Function):
    """Its own class: the backward pass of rows finds the transport on its nodes (`distgnn/rows/gradients.py`)."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, transport: Transport) -> torch.Tensor:
        ctx.transport = transport
        return _sum(transport.comm, values)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        ctx.transport.has_global_loss |= grad.numel() == 1  # a norm layer's statistics are no loss
        return _sum(ctx.transport.comm, grad), None


def _sum(comm: MPI.Comm, values: torch.Tensor) -> torch.Tensor:
    local = np.ascontiguousarray(values.detach().numpy())
    return torch.from_numpy(sum_over_ranks(comm, local)).view(values.shape)


def min_over_ranks(comm: MPI.Comm, number: int) -> int:
    """The smallest of one integer per rank. Collective: yes."""
    return comm.allreduce(number, op=MPI.MIN) if comm.size > 1 else number
