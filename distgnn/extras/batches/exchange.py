"""BatchExchange: the exchange of a plan for some of the vertices, others in every step.

Legend: O owned rows, B the batch's, S source halos, T target halos, D width.

    broadcast  held[O, D] -> pack rows of the batch -> send       receive -> held halos[S, D], at the batch's rows
    reduce     receive -> add to out[B, D]                        targets of the batch -> send

Both ends leave out the same vertices and keep the order of the plan, so no ids travel.
"""

from dataclasses import dataclass, replace

import numpy as np

from distgnn.comm.exchange import Exchange
from distgnn.comm.plans import plan_of_some
from distgnn.partition import ExchangePlan


@dataclass(frozen=True)
class OwnedAndHalos:
    """Of each owned row [O], source halo [S] and target halo [T]: is it in a batch, or its micro-part."""

    owned: np.ndarray
    sources: np.ndarray
    targets: np.ndarray

    def transposed(self) -> "OwnedAndHalos":
        """For the transposed plan: sources and targets change places."""
        return OwnedAndHalos(self.owned, self.targets, self.sources)


class BatchExchange(Exchange):
    """The synchronous exchange of the vertices of a batch, which `choose` names anew for each step.

    Collective: as `Exchange`. Args: plan: of all vertices.

    Notes: what a broadcast packs are rows of the table [O, D] of all owned rows; what arrives is written to the table
        of halo rows that `arrive_in` was given. A reduce adds to the compact rows [B, D] of the batch. Buffers are made
        once, for all vertices.
    """

    def choose(self, whole: ExchangePlan, chosen: OwnedAndHalos) -> None:
        """From now on only the vertices of a batch; the plan is the part of `whole` that is about them."""
        self.whole = whole
        some = plan_of_some(whole, chosen.owned, chosen.sources, chosen.targets)
        sent = whole.broadcast_rows[chosen.owned[whole.broadcast_rows]]  # rows of the table of all owned rows
        self.plan: ExchangePlan = replace(some, num_owned=whole.num_owned, broadcast_rows=sent)
        self._source_rows = np.flatnonzero(chosen.sources)

    def arrive_in(self, halos: np.ndarray) -> None:
        """Where the next broadcast leaves rows: a table [S, D] of all source halos."""
        self._halos = halos

    def finish_broadcast(self) -> np.ndarray:
        """The table of all source halos, the batch's rows new in it."""
        self._halos[self._source_rows] = super().finish_broadcast()
        return self._halos

    def _buffer(self, role: str, num_rows: int, like: np.ndarray) -> np.ndarray:
        whole = self.whole
        ends = {"sources": whole.source_indptr, "packed": whole.broadcast_indptr}
        ends |= {"partials": whole.reduce_indptr, "targets": whole.target_indptr}
        return super()._buffer(role, max(int(ends[role][-1]), num_rows), like)[: int(num_rows)]
