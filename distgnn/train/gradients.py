"""Parameters and gradients over ranks: one broadcast at the start, one summed buffer per step.

The buffer is cut into buckets of whole parameters. A bucket's sum over ranks starts when its gradients are there and
the buckets before it have started: the last layers' gradients travel behind the first layers' backward pass.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import Counters, wait_for_all
from distgnn.comm.ending.alike import Alike
from distgnn.comm.sums import start_max_over_ranks
from distgnn.ops.own_loop import mark_summed
from distgnn.ops.step_check import StepCheck
from distgnn.ops.sums import Bucket, broadcast_tensors, by_dtype, clip_gradients, is_rows

BUCKET_NUMBERS = 2**16  # a bucket is closed when it has this number: a message worth its latency


class GradientBuffer:
    """All gradients of a model in flat buffers, summed over ranks bucket by bucket.

    The backward pass leaves gradients of its own. On several ranks they are copied to the buffer once complete, and
    every parameter's `.grad` is a view of it after `sum`; on one rank they stay, and the buffer is not touched.

    Collective: the constructor (broadcasts the parameters of rank 0), `sum`.

    Args:
        model: with the same parameters, in the same order, on every rank.
        comm: communicator of the graph; duplicated, so that sums may start between other collective calls.
        counters: where the time spent in `sum` is counted.

    Attributes: overlap: sums start behind the backward pass; the same bits without. parameters: all; shared: without
        tables of rows of all ranks, whose gradients are not summed.

    Notes: buckets start in one order on every rank, the last parameters first: a bucket waits for those before it.
    """

    def __init__(self, model: nn.Module, comm: Any, counters: Counters | None = None):
        self.comm: Any = comm.Dup() if comm.size > 1 else comm
        self.counters: Counters = counters or Counters()
        self.parameters: list[nn.Parameter] = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.shared: list[nn.Parameter] = [one for one in self.parameters if not is_rows(one)]
        self._tables: list[Any] = [one.inner for one in self.parameters if is_rows(one)]
        self._buckets = [bucket for same in by_dtype(self.shared) for bucket in _buckets(same)]
        self._bucket_of = {id(p): bucket for bucket in self._buckets for p in bucket.parameters}
        self.overlap = comm.size > 1
        self._requests: list[Any] = []
        self._armed, self._started = False, 0
        self._check: StepCheck | None = None
        self._alike = Alike()
        self.scale: float = 1.0  # what the last `clip` multiplied gradients with
        broadcast_tensors([*model.parameters(), *model.buffers()], comm)
        for parameter in self.shared if self.overlap else ():
            parameter.register_post_accumulate_grad_hook(self._gradient_is_there)

    def zero(self) -> None:
        """Before the backward pass: there are no gradients."""
        for bucket in self._buckets:
            bucket.reset()
        for table in self._tables:
            table.grad = None
        self._armed, self.scale = self.overlap, 1.0

    def compare(self, check: StepCheck) -> None:
        """Before the backward pass: ranks compare this while they sum, and go no further where it differs."""
        self._check, self._most = check, np.array([check.value, check.known, -check.value, -check.known], np.int64)

    def sum(self) -> None:
        """After the backward pass: each gradient becomes its sum over ranks, the same bits on each.

        Raises: RunError on every rank, where ranks have taken different things into the step.
        """
        for table in self._tables:  # a table's gradient lies with its rows, whole
            table.grad = torch.zeros_like(table) if table.grad is None else table.grad
        if self.comm.size == 1:
            for bucket in self._buckets:
                for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                    if parameter.grad is None:
                        parameter.grad = view.zero_()
            return
        with self.counters.timing("all_reduce_seconds"):
            while self._started < len(self._buckets):
                self._start_next()
            wait_for_all(self._requests)
            self._requests = []
        if self._check is not None:
            with self._check.compared(self._alike):
                self._alike.check(self.comm, self._most[:2], -self._most[2:], "")
            self._check = None
        self._armed, self._started = False, 0
        mark_summed(self.shared)  # torch optimisers refuse a step on others

    def clip(self, most: float) -> float:
        """As `clip_gradients`; returns the norm before, and `scale` is what gradients were multiplied with."""
        norm, self.scale = clip_gradients(self.parameters, most)
        return norm

    def _gradient_is_there(self, parameter: nn.Parameter) -> None:
        if not self._armed:  # a backward pass of another trainer
            return
        bucket = self._bucket_of[id(parameter)]
        bucket.num_missing -= 1
        while self._started < len(self._buckets) and self._buckets[self._started].num_missing <= 0:
            self._start_next()

    def _start_next(self) -> None:
        if not self._started and self._check is not None:
            self._requests.append(start_max_over_ranks(self.comm, self._most))
        self._requests.append(self._buckets[self._started].start(self.comm))
        self._started += 1

    def finite(self) -> bool:
        """Is every gradient a finite number? After `sum` the answer is the same on every rank."""
        grads = [p.grad for p in self.parameters if p.grad is not None]
        # A sum is finite only where all numbers are. It may overflow where they are, so that they are looked at then.
        return all(bool(torch.isfinite(grad.sum())) or bool(torch.isfinite(grad).all()) for grad in grads)


@torch.no_grad()
def lay_out(model: nn.Module) -> None:
    """Store the weight [D, I] of every linear layer as [I, D], in place; shapes, names and values are as they were.

        x W'        reads rows of W' [I, D]        its gradient x' g is made as [I, D] too

    So nothing is turned round in a step: not the weight, for the product of sparse rows, and not its gradient, which
    torch takes as it is where it lies like its parameter. With a first layer of thousands of columns that is most of
    what a step on a small batch does beside its products.
    """
    for module in model.modules():
        if type(module) is nn.Linear:
            module.weight.data = module.weight.data.t().contiguous().t()


class _Bucket(Bucket):
    """Neighbouring parameters, whose sum starts once their last gradient is there."""

    def __init__(self, parameters: list[nn.Parameter], flat: np.ndarray):
        super().__init__(parameters, flat)
        self.reset()

    def reset(self) -> None:
        self.num_missing = len(self.parameters)
        for parameter in self.parameters:
            parameter.grad = None

    def start(self, comm: Any) -> Any:
        request = super().start(comm)
        for parameter, view in zip(self.parameters, self.views, strict=True):
            parameter.grad = view
        return request


def _buckets(parameters: list[nn.Parameter]) -> Iterator[_Bucket]:
    """The buckets of the parameters of one dtype in one flat buffer, the last parameters first."""
    flat = np.zeros(sum(p.numel() for p in parameters), parameters[0].detach().numpy().dtype)
    waiting, first, count = [], 0, 0
    for parameter in reversed(parameters):
        waiting.append(parameter)
        count += parameter.numel()
        if count >= BUCKET_NUMBERS or parameter is parameters[0]:
            yield _Bucket(waiting, flat[first : first + count])
            waiting, first, count = [], first + count, 0
