"""The delayed schedule cd-r: a bin of rows leaves in epoch e without waiting and counts from epoch e + r on; and rows
that travel at another width, with any delay.

Legend: S / T source and target halos, R rows that owners receive in a reduce, D width.

Every leg (broadcast or reduce, of one exchange site, forward or backward) holds what arrived last:

    epoch e, bin b = e mod r:  take what was sent of bin b in epoch e - r into the held rows; send bin b of now; go on
                               with the held rows
    warm-up epochs:            synchronous; they fill all held rows

Source: Md et al., DistGNN, SC'21, section 5 (cd-r); held rows and delayed gradients as in PipeGCN (Wan et al.,
ICLR'22). Which message counts is a matter of epochs, not of arrival: a run repeated is bit-identical.
"""

from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

from distgnn.comm.bins import Bin
from distgnn.comm.exchange import Exchange
from distgnn.comm.wire import Wire


@dataclass
class _Leg:
    """What one leg of one site holds: `held` rows, and per bin a message in flight in each direction."""

    held: np.ndarray
    sent: dict[int, np.ndarray] = field(default_factory=dict)
    received: dict[int, np.ndarray] = field(default_factory=dict)
    requests: dict[int, list[MPI.Request]] = field(default_factory=dict)

    def num_bytes(self) -> int:
        in_flight = [*self.sent.values(), *self.received.values()]
        return self.held.nbytes + sum(buffer.nbytes for buffer in in_flight)


class DelayedExchange:
    """An exchange whose messages count `delay` epochs after they were sent, and travel at the width of `wire`.

    It has the verbs of `Exchange`; `at` says for which site and epoch. Delay 0 (one bin) is synchronous.

    Collective: every verb.

    Args:
        exact: the synchronous exchange of the same plan; used in warm-up epochs.
        bins: of the plan (`make_bins`), max(delay, 1) of them.
        delay: epochs between sending a row and using it.
        warmup: epochs at the start that are exact: synchronous, and rows travel whole.
        wire: width of the messages.
    """

    def __init__(self, exact: Exchange, bins: list[Bin], delay: int, warmup: int, wire: Wire):
        self.exact, self.bins, self.delay, self.warmup, self.wire = exact, bins, delay, warmup, wire
        self.plan, self.transport = exact.plan, exact.transport
        self._legs: dict[tuple, _Leg] = {}
        self._site, self._epoch, self._seed = 0, 0, 0

    def at(self, site: int, epoch: int, seed: int = 0) -> "DelayedExchange":
        """Turn to one exchange of the model in one epoch; `seed` is that of random rounding."""
        self._site, self._epoch, self._seed = site, epoch, seed
        return self

    @property
    def synchronous(self) -> bool:
        """Is this a warm-up epoch?"""
        return self._epoch < self.warmup

    @property
    def bin(self) -> Bin:
        """The rows that leave in this epoch."""
        return self.bins[self._epoch % len(self.bins)]

    def start_broadcast(self, rows: np.ndarray) -> None:
        """Send this epoch's bin of owned `rows` [O, D]."""
        if self.synchronous:
            self.exact.start_broadcast(rows)
            return
        chosen = self.plan.broadcast_rows
        leg = self._leg("broadcast", self.plan.num_source_halos, rows)
        self._turn_over(leg, "broadcast", rows, chosen, self.bin.sources_owner, self.bin.sources_halo)

    def finish_broadcast(self) -> np.ndarray:
        """The source halos [S, D]: what arrived last."""
        if not self.synchronous:
            return self._held("broadcast", self.bin.sources_halo)
        sources = self.exact.finish_broadcast()
        np.copyto(self._leg("broadcast", len(sources), sources).held, sources)
        return sources

    def target_rows(self, like: np.ndarray) -> np.ndarray:
        """The buffer [T, D] for partial sums; only `target_pieces` of it are sent."""
        return self.exact.target_rows(like)

    def target_pieces(self) -> list[slice]:
        """The target halos whose partial sums are sent in this epoch."""
        if self.synchronous:
            return self.exact.target_pieces()
        return [piece for pieces in self.bin.targets_halo for piece in pieces]

    def start_reduce(self, targets: np.ndarray) -> None:
        """Send this epoch's bin of partial sums `targets` [T, D]."""
        if self.synchronous:
            self.exact.start_reduce(targets)
            return
        chosen = np.arange(len(targets), dtype=np.int32)
        leg = self._leg("reduce", int(self.plan.reduce_indptr[-1]), targets)
        self._turn_over(leg, "reduce", targets, chosen, self.bin.targets_halo, self.bin.targets_owner)

    def finish_reduce(self, out: np.ndarray) -> None:
        """Add the partial sums that arrived last to owned rows `out` [O, D], in the order of ranks."""
        if not self.synchronous:
            self.exact.add_partials(out, self._held("reduce", self.bin.targets_owner))
            return
        partials = self.exact.finish_reduce(out)
        np.copyto(self._leg("reduce", len(partials), partials).held, partials)

    def progress(self) -> None:
        """Let MPI move what is in flight."""
        self.exact.progress()

    def drain(self) -> None:
        """Wait until nothing is in flight; what arrives is not taken."""
        for leg in self._legs.values():
            for requests in leg.requests.values():
                self.transport.wait(requests)

    def buffer_bytes(self) -> int:
        """Memory for held rows and messages in flight."""
        return sum(leg.num_bytes() for leg in self._legs.values())

    def _leg(self, verb: str, num_rows: int, like: np.ndarray) -> _Leg:
        key = (verb, self._site)
        if key not in self._legs:
            self._legs[key] = _Leg(np.zeros((num_rows, like.shape[1]), like.dtype))
        return self._legs[key]

    def _held(self, verb: str, receiving) -> np.ndarray:
        """The held rows of this site; with delay 0 what is on its way is waited for."""
        leg = self._legs[verb, self._site]
        if self.delay == 0:
            self._take(leg, receiving)
        return leg.held

    def _turn_over(self, leg: _Leg, verb: str, rows: np.ndarray, chosen: np.ndarray, sending, receiving) -> None:
        """Take the bin's last message, then send the bin anew: `chosen` numbers `rows` as `sending` counts them."""
        tag = self.transport.begin(verb, rows.shape[1])
        if self.delay > 0:
            self._take(leg, receiving)
        number = self._epoch % len(self.bins)
        if number not in leg.sent:
            leg.sent[number] = self.wire.room(_count(sending), rows)
            leg.received[number] = self.wire.room(_count(receiving), rows)
        sent, received = leg.sent[number], leg.received[number]
        requests = [self.transport.receive(received[part], rank, tag) for rank, part in _messages(receiving)]
        for rank, part in _messages(sending):
            with self.transport.counters.timing("pack_seconds"):
                numbers = np.concatenate([chosen[piece] for piece in sending[rank]])
                self.wire.encode(verb, rows, numbers, sent[part], (self._seed, self._epoch, self._site))
            requests.append(self.transport.send(sent[part], rank, tag))
        leg.requests[number] = requests

    def _take(self, leg: _Leg, receiving) -> None:
        """Held rows of the bin become what was received of it; nothing, if nothing was sent yet."""
        number = self._epoch % len(self.bins)
        if number not in leg.requests:
            return
        self.transport.wait(leg.requests[number])
        received = leg.received[number]
        with self.transport.counters.timing("pack_seconds"):
            for rank, rows in _messages(receiving):
                first = rows.start
                for piece in receiving[rank]:
                    last = first + piece.stop - piece.start
                    self.wire.decode(received[first:last], leg.held[piece])
                    first = last


def _count(pieces: list[list[slice]]) -> int:
    """Rows of all pieces."""
    return sum(_length(of_rank) for of_rank in pieces)


def _messages(pieces: list[list[slice]]):
    """(rank, its rows in the bin's buffer) for every rank that has some."""
    first = 0
    for rank, of_rank in enumerate(pieces):
        length = _length(of_rank)
        if length:
            yield rank, slice(first, first + length)
        first += length


def _length(pieces: list[slice]) -> int:
    return sum(piece.stop - piece.start for piece in pieces)
