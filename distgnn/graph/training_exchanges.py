"""The exchanges of a graph's training steps under its schedule, and what a checkpoint needs of them.

Part of `DistGraph`, which has the plan, the transport and the exact exchanges.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from distgnn.comm import DelayedExchange, Wire, make_bins
from distgnn.errors import InputError
from distgnn.ops.aggregation.aggregator import Site


class Scheduled:
    """The part of a DistGraph that knows late, narrow and skipped rows."""

    _exact_now = False  # within `exact_exchanges`

    def _delayed_exchanges(self) -> tuple:
        """Forward and backward exchanges of training steps, where they are not exact: delayed, narrow, or both."""
        delay, schedule = self.algorithm.delay, self.schedule
        if self.algorithm.no_exchange or (delay is None and schedule.exact):
            return None, None
        bins = make_bins(self.plan, delay or 1, self.comm)
        warmup, held = schedule.warmup_epochs if delay else 0, schedule.remote_rule == "held"
        directions = (self.exchange, bins), (self.transposed_exchange, [one.transposed() for one in bins])
        found = []
        for direction, (exchange, pieces) in enumerate(directions):
            wire = self._wire(schedule.wires[direction], direction)
            late = DelayedExchange(exchange, pieces, delay or 0, warmup, wire, smooth=schedule.smooth, held=held)
            found.append(late)
        return tuple(found)

    def _wire(self, name: str, direction: int) -> Wire:
        if name != "float32" and self.dtype == torch.float64:
            raise InputError(f"wire {name} is for float32 rows: dtype is {self.dtype}")
        sent = self.local.global_ids[self._halos_that_reduce(direction)]
        return Wire(name, self.owned_ids, sent + (self.rank + 1) * self.num_global_nodes, direction)

    def _halos_that_reduce(self, direction: int) -> np.ndarray:
        """Local rows of the halos whose rows a reduce sends: targets forward, sources backward."""
        return self.local.source_halo_rows if direction else self.local.target_halo_rows

    @property
    def exchanges_exactly(self) -> bool:
        """Are training exchanges synchronous and whole, so that one may be repeated?"""
        return not (self.algorithm.no_exchange or self._delayed[0])

    @property
    def aggregates_exactly(self) -> bool:
        """Do the rows that count in a training step equal those of this step everywhere, to the bit?"""
        return not self.algorithm.no_exchange and all(one is None or one.keeps_rows for one in self._delayed)

    @property
    def waits_for_rows(self) -> bool:
        """Does an aggregation of a training step wait for messages, so that other work is worth doing meanwhile?"""
        late = any(one is not None and one.delay > 0 for one in self._delayed)
        return self.num_ranks > 1 and self.update == "owners" and not late

    @contextmanager
    def exact_exchanges(self) -> Iterator[None]:
        """Within, every exchange of a training step is synchronous and whole, and moves nothing of the schedule."""
        self._exact_now = True
        try:
            yield
        finally:
            self._exact_now = False

    def next_site(self) -> Site | None:
        """Where in the training step the next exchange stands, under a delayed algorithm; else None: exact."""
        if self._exact_now or self.exchanges_exactly or not torch.is_grad_enabled():
            return None
        self._num_sites += 1
        return Site(self._num_sites - 1, self._step, self.seed)

    def narrows(self, in_feats: int, out_feats: int) -> bool:
        """Does a layer of these widths multiply before it aggregates? What travels is then the narrower row."""
        return self.transform_first and in_feats > out_feats

    def drain(self) -> None:
        """Wait until no message of this rank is in flight; delayed rows that arrive are not taken. Collective: yes."""
        for exchange in (self.exchange, self.transposed_exchange, *self._delayed):
            if exchange is not None:
                exchange.drain()

    def exchange_bytes(self) -> int:
        """Memory of this rank for messages and held rows."""
        exchanges = (self.exchange, self.transposed_exchange, *self._delayed)
        return sum(exchange.buffer_bytes() for exchange in exchanges if exchange is not None)

    def schedule_state(self) -> dict[str, np.ndarray]:
        """Held and pending rows of the schedule of this rank, for a checkpoint between epochs: arrays by name.

        Collective: yes. Messages in flight are completed and not applied (`DelayedExchange.state_dict`); training goes
        on to the same bits, here and, with `load_schedule_state`, in another process on the same partition with the
        same settings. Empty where nothing is held (cd-0 and 0c).
        """
        return {
            f"{direction}.{name}": array
            for direction, exchange in zip(("forward", "backward"), self._delayed, strict=True)
            if exchange is not None
            for name, array in exchange.state_dict().items()
        }

    def load_schedule_state(self, state: dict[str, np.ndarray]) -> None:
        """Take up what `schedule_state` gave on this rank. Collective: yes.

        Raises:
            ValueError: where it is the state of another partition or of other settings.
        """
        for direction, exchange in zip(("forward", "backward"), self._delayed, strict=True):
            mine = {name.split(".", 1)[1]: array for name, array in state.items() if name.startswith(f"{direction}.")}
            if bool(mine) != (exchange is not None):
                raise ValueError(f"the state {'has' if mine else 'lacks'} held rows, {self.algorithm.name} does not")
            if exchange is not None:
                exchange.load_state_dict(mine)

    def refill_schedule(self, epoch: int) -> None:
        """Drop held and pending rows: the warm-up epochs are run again from `epoch` on and fill them. Collective: yes.

        For a checkpoint that is resumed at another rank count, whose rows are those of another partition.
        """
        for exchange in self._delayed:
            if exchange is not None:
                exchange.refill(epoch)
