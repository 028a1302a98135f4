"""The delayed schedule cd-r: a bin of rows leaves in epoch e without waiting and counts from epoch e + r on.

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

from distgnn import kernels
from distgnn.comm.bins import Bin
from distgnn.comm.exchange import Exchange


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
    """An exchange whose messages count `delay` epochs after they were sent.

    It has the verbs of `Exchange`; `at` says for which site and epoch. Delay 0 (one bin) is synchronous.

    Collective: every verb.

    Args:
        exact: the synchronous exchange of the same plan; used in warm-up epochs.
        bins: of the plan (`make_bins`), max(delay, 1) of them.
        delay: epochs between sending a row and using it.
        warmup: epochs at the start that are synchronous.
    """

    def __init__(self, exact: Exchange, bins: list[Bin], delay: int, warmup: int):
        self.exact, self.bins, self.delay, self.warmup = exact, bins, delay, warmup
        self.plan, self.transport = exact.plan, exact.transport
        self._legs: dict[tuple, _Leg] = {}
        self._site, self._epoch = 0, 0

    def at(self, site: int, epoch: int) -> "DelayedExchange":
        """Turn to one exchange of the model in one epoch."""
        self._site, self._epoch = site, epoch
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
        tag = self.transport.begin("broadcast", rows.shape[1])

        def pack(pieces: list[slice], out: np.ndarray) -> None:
            chosen = np.concatenate([self.plan.broadcast_rows[piece] for piece in pieces])
            kernels.pack_rows(rows, chosen, out=out)

        leg = self._leg("broadcast", self.plan.num_source_halos, rows)
        self._turn_over(leg, self.bin.sources_owner, self.bin.sources_halo, pack, tag, rows)

    def finish_broadcast(self) -> np.ndarray:
        """The source halos [S, D]: what arrived last."""
        if not self.synchronous:
            return self._legs["broadcast", self._site].held
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
        tag = self.transport.begin("reduce", targets.shape[1])

        def pack(pieces: list[slice], out: np.ndarray) -> None:
            np.concatenate([targets[piece] for piece in pieces], out=out)

        leg = self._leg("reduce", int(self.plan.reduce_indptr[-1]), targets)
        self._turn_over(leg, self.bin.targets_halo, self.bin.targets_owner, pack, tag, targets)

    def finish_reduce(self, out: np.ndarray) -> None:
        """Add the partial sums that arrived last to owned rows `out` [O, D], in the order of ranks."""
        if not self.synchronous:
            self.exact.add_partials(out, self._legs["reduce", self._site].held)
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

    def _turn_over(self, leg: _Leg, sending, receiving, pack, tag: int, like: np.ndarray) -> None:
        """Take the bin's last message, then send it anew; with delay 0 the other way round."""
        if self.delay > 0:
            self._take(leg, receiving)
        self._send(leg, sending, receiving, pack, tag, like)
        if self.delay == 0:
            self._take(leg, receiving)

    def _send(self, leg: _Leg, sending, receiving, pack, tag: int, like: np.ndarray) -> None:
        number = self._epoch % len(self.bins)
        sent = leg.sent.setdefault(number, _room(sending, like))
        received = leg.received.setdefault(number, _room(receiving, like))
        requests = [self.transport.receive(received[rows], rank, tag) for rank, rows in _messages(receiving)]
        for rank, rows in _messages(sending):
            with self.transport.counters.timing("pack_seconds"):
                pack(sending[rank], sent[rows])
            requests.append(self.transport.send(sent[rows], rank, tag))
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
                    leg.held[piece] = received[first:last]
                    first = last


def _room(pieces: list[list[slice]], like: np.ndarray) -> np.ndarray:
    """A buffer for the rows of all pieces."""
    return np.empty((sum(_length(of_rank) for of_rank in pieces), like.shape[1]), like.dtype)


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
