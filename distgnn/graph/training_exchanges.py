"""The exchanges of a graph's training steps under its schedule, and what a checkpoint needs of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from distgnn.comm import DelayedExchange, Exchange, Wire, make_bins
from distgnn.comm.bins import Bin
from distgnn.errors import InputError
from distgnn.ops.aggregation.aggregator import Site


class TrainingExchanges:
    """Exact exchanges forward and backward, and where the schedule has any, delayed or narrow ones beside them.

    Collective: the constructor, where the schedule is not exact.

    Args:
        graph: the DistGraph, whose schedule, plan and transport are set.
        exact: the synchronous exchanges of its plan and of the transposed one.

    Attributes:
        exact: forward and backward, of evaluation and, under cd-0 with whole rows, of training.
        delayed: forward and backward, of training steps; None where those are exact.
    """

    def __init__(self, graph: Any, exact: tuple[Exchange, Exchange]):
        self._graph = graph
        algorithm, schedule, plan, transport = graph.algorithm, graph.schedule, graph.plan, graph.transport
        self._exact_now = False  # within `all_exact`
        self.exact: tuple[Exchange, Exchange] = exact
        self.delayed: tuple[DelayedExchange | None, DelayedExchange | None] = (None, None)
        if not (algorithm.exact and schedule.exact):
            bins = make_bins(plan, algorithm.delay or 1, transport.comm)
            self.delayed = self._delayed(0, bins), self._delayed(1, [one.transposed() for one in bins])

    def _delayed(self, direction: int, bins: list[Bin]) -> DelayedExchange:
        delay, schedule = self._graph.algorithm.delay or 0, self._graph.schedule
        warmup = schedule.warmup_epochs if delay else 0
        wire = self.wire_of(schedule.wires[direction], direction)
        weight, exact, held = schedule.late_row_average, self.exact[direction], self._graph.late_rows_stay
        return DelayedExchange(exact, bins, delay, warmup, wire, late_row_average=weight, held=held)

    def wire_of(self, name: str, direction: int) -> Wire:
        """The wire of a width, with the ids that key random rounding."""
        graph, part = self._graph, self._graph.local
        if name != "float32" and graph.dtype == torch.float64:
            raise InputError(f"wire {name} is for float32 rows: dtype is {graph.dtype}")
        # Partial sums of one vertex come from several ranks and are added: with ids of their own on each rank, and none
        # of an owned row, their rounding errors are independent and partly cancel.
        halo_ids = part.global_ids[graph.reduced_halos(part, direction)] + (graph.rank + 1) * graph.num_global_nodes
        return Wire(name, np.ascontiguousarray(part.global_ids[: part.num_owned]), halo_ids, direction)

    @property
    def exchanges_exactly(self) -> bool:
        return self._graph.sends_in_training and self.delayed[0] is None

    @property
    def aggregates_exactly(self) -> bool:
        return self._graph.sends_in_training and all(one is None or one.keeps_rows for one in self.delayed)

    @property
    def waits_for_rows(self) -> bool:
        """Does an aggregation of a training step wait for messages, so that overlapping other work with it pays?"""
        late = any(one is not None and one.delay > 0 for one in self.delayed)
        return self._graph.transport.num_ranks > 1 and self._graph.update == "owners" and not late

    @contextmanager
    def all_exact(self) -> Iterator[None]:
        """Within, every exchange of a training step is synchronous and whole, and moves nothing of the schedule."""
        self._exact_now = True
        try:
            yield
        finally:
            self._exact_now = False

    def next_site(self) -> Site | None:
        if self._exact_now or self.exchanges_exactly:
            return None
        keys = self._graph.random_keys
        keys.check_exchange()
        if not torch.is_grad_enabled():
            return None
        return Site(keys.next_site(), keys.step, keys.seed)

    def _all(self) -> list[Exchange | DelayedExchange]:
        return [one for one in (*self.exact, *self.delayed) if one is not None]

    def drain(self) -> None:
        """Wait until no message of this rank is in flight; delayed rows that arrive are not taken. Collective: yes."""
        for exchange in self._all():
            exchange.drain()

    def blocks(self) -> list[tuple[str, object]]:
        return [block for one in self._all() for block in one.blocks()]

    def buffer_bytes(self) -> int:
        return self._graph.transport.messages.num_bytes + sum(exchange.buffer_bytes() for exchange in self._all())

    def state_dict(self) -> dict[str, np.ndarray]:
        """Held and pending rows of the schedule of this rank, for a checkpoint between epochs: arrays by name.

        Collective: yes. Messages in flight are completed and not applied (`DelayedExchange.state_dict`); training goes
        on to the same bits, here and, with `load_state_dict`, in another process on the same partition with the same
        settings. Empty where nothing is held (cd-0).
        """
        return {
            f"{direction}.{name}": array
            for direction, exchange in zip(("forward", "backward"), self.delayed, strict=True)
            if exchange is not None
            for name, array in exchange.state_dict().items()
        }

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Take up what `state_dict` gave on this rank. Collective: yes."""
        for direction, exchange in zip(("forward", "backward"), self.delayed, strict=True):
            mine = {name.split(".", 1)[1]: array for name, array in state.items() if name.startswith(f"{direction}.")}
            if bool(mine) != (exchange is not None):
                raise ValueError(
                    f"the state {'has' if mine else 'lacks'} held rows, {self._graph.algorithm.name} does not"
                )
            if exchange is not None:
                exchange.load_state_dict(mine)

    def refill(self, epoch: int) -> None:
        """Drop held and pending rows: the warm-up epochs are run again from `epoch` on and fill them. Collective: yes.

        For a checkpoint that is resumed at another rank count, whose rows belong to another partition.
        """
        for exchange in self.delayed:
            if exchange is not None:
                exchange.refill(epoch)
