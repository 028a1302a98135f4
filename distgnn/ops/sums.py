"""Sums over ranks: `all_sum` with its gradient, and the plain ones that steer a run.

Gradients over ranks: one sum for the trainer, for loops of one's own and for losses of all ranks' rows.

Gradients of one dtype are copied side by side (`Bucket`), and the sum is one message. The trainer has several buckets
and starts each behind the backward pass (`distgnn/train/gradients.py`); others have one for each dtype.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from mpi4py import MPI
from torch import nn

from distgnn.comm import Transport, extreme_over_ranks, start_sum_over_ranks, sum_over_ranks
from distgnn.ops.function import Function, GraphView, of_floats, wide


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


class Bucket:
    """Parameters of one dtype and, in `flat`, their gradients side by side: float32 for narrower ones.

    Attributes: views: of `flat`, in the parameters' shapes; in a `flat` that is given in their strides, too.
    """

    def __init__(self, parameters: list[nn.Parameter], flat: np.ndarray | None = None):
        own = flat is None
        if flat is None:
            dtype = parameters[0].dtype
            flat = np.empty(sum(one.numel() for one in parameters), wide(torch.empty(0, dtype=dtype)).numpy().dtype)
        self.parameters, self.flat = parameters, flat
        ends = np.cumsum([one.numel() for one in parameters])
        self.views: list[torch.Tensor] = []
        for one, piece in zip(parameters, np.split(flat, ends[:-1]), strict=True):
            if own:  # ranks may have other strides in a loop of one's own
                self.views.append(torch.from_numpy(piece).view(one.shape))
                continue
            stride = torch.empty_like(one, device="meta").stride()  # without gaps, where the parameter is a piece
            self.views.append(torch.from_numpy(piece).as_strided(one.shape, stride))

    def fill(self) -> None:
        for parameter, view in zip(self.parameters, self.views, strict=True):
            if parameter.grad is not view:
                view.zero_() if parameter.grad is None else view.copy_(parameter.grad.detach())

    def start(self, comm: Any) -> Any:
        """Copy the gradients and start their sum. Collective: yes. Returns: a request."""
        self.fill()
        return start_sum_over_ranks(comm, self.flat)


def sums_of_gradients(parameters: list[Any], comm: Any) -> Iterator[tuple[Any, torch.Tensor]]:
    """(parameter, the sum of its gradients over ranks), in one message for each dtype; none counts as zero.

    Collective: yes.
    """
    for bucket in map(Bucket, by_dtype(parameters)):
        bucket.fill()
        bucket.flat[:] = sum_over_ranks(comm, bucket.flat)  # one that waits: a rank that makes another call is noticed
        for one, total in zip(bucket.parameters, bucket.views, strict=True):
            yield one, total.to(one.dtype)


def by_dtype(parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    groups: dict[torch.dtype, list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(parameter.dtype, []).append(parameter)
    return list(groups.values())


def clip_gradients(parameters: Iterable[nn.Parameter], most: float) -> tuple[float, float]:
    """Scale gradients, in place, so that their Euclidean norm is at most `most`.

    Returns: the norm before, and the factor. After the sum over ranks both are the same bits on every rank: numpy adds
        in one order for any number of threads.
    """
    given = [parameter.grad for parameter in parameters if parameter.grad is not None]
    arrays: list[Any] = [grad if is_rows(grad) else wide(grad).numpy() for grad in given]
    squares = (one.double().square() if is_rows(one) else np.square(one, dtype=np.float64) for one in arrays)
    norm = math.sqrt(math.fsum(float(one.sum()) for one in squares))
    if not norm > most:
        return norm, 1.0
    for grad in given:
        grad *= most / norm
    return norm, most / norm


def broadcast_tensors(tensors: Iterable[torch.Tensor], comm: Any) -> None:
    """Copy tensors of rank 0 to all ranks, in place. Collective: yes."""
    if comm.size == 1:
        return
    for tensor in tensors:
        if is_rows(tensor):
            continue
        values = wide(tensor.detach()).contiguous().numpy().copy()
        comm.Bcast(values, root=0)
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(values))


def is_rows(parameter: Any) -> bool:
    """Is this a table of rows, whose gradient lies with them and is not summed over ranks?"""
    return getattr(parameter, "knows_rows", False)
