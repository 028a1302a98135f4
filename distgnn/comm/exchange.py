"""Exchange: runs one ExchangePlan. `broadcast` and `reduce` mirror each other, each split into start and finish.

Legend: O owned rows, S source halos, T target halos (compact: by owner rank), D width.

    owner side                                halo side
    broadcast  rows[O, D] -> pack -> send     receive -> sources[S, D]      (contiguous per owner: nothing to unpack)
    reduce     receive -> add to out[O, D]    targets[T, D] -> send         (contiguous per owner: nothing to pack)

Buffers belong to the transport (`MessageMemory`): all exchanges of a graph use the same ones. Who may use one, until
when; "next" is the next of any exchange of the graph:

    packed     rows to be sent; MPI reads it until the next `start_broadcast`, which waits before it packs
    sources    what `finish_broadcast` returns: the caller reads it until the next broadcast
    targets    what `target_rows` returns: the caller writes it until `start_reduce`; then MPI reads it until the next
               `target_rows`, which waits
    partials   MPI writes it from `start_reduce` to `finish_reduce`, which reads it

With `into=` the caller's array takes the place of `sources` or `partials` and stays the caller's.

With `Transport.in_pieces` all rows travel in pieces of PIECE_BYTES. `packed` then has room for two, and `reduce_made`
takes the place of the reduce: `targets` and `partials` have room for one piece.
"""

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np
from mpi4py import MPI

from distgnn import kernels
from distgnn.comm.sums import are_complete
from distgnn.comm.transport import MessageMemory, Transport
from distgnn.partition import ExchangePlan

PIECE_BYTES = 8 << 20  # of packed rows that travel in pieces


class Exchange:
    """The synchronous schedule (cd-0) of one plan.

    Collective: every rank of the transport makes the same calls in the same order, also where it has no halo.

    Args:
        plan: who sends which rows to whom, of this rank.
        transport: shared by all exchanges of the graph.
        messages: memory of its own; None: the transport's.

    Notes:
        Received partial sums are added in the order of ranks: the result does not depend on arrival.
        One broadcast and one reduce of a graph may be in flight: starting a second before the first is finished loses
        the first.
    """

    def __init__(self, plan: ExchangePlan, transport: Transport, messages: MessageMemory | None = None):
        self.plan = plan
        self.transport = transport
        self.messages: MessageMemory = transport.messages if messages is None else messages
        self._receiving: list[MPI.Request] = []
        self._arriving = np.empty((0, 0))
        self.tag: int = 0

    def start_broadcast(self, rows: np.ndarray, into: np.ndarray | None = None, in_pieces: bool = False) -> None:
        """Start sending owned `rows` [O, D] to the ranks that hold them as source halos. Collective: yes.

        Args:
            rows: packed before this returns, and free again; in pieces these may be some of an array's columns.
            into: [S, D], where this rank's source halos arrive; the caller leaves it alone until `finish_broadcast`.
            in_pieces: no more than two pieces of packed rows are there at a time, and all but these have arrived when
                this returns. On all ranks, or on none.
        """
        plan, width = self.plan, rows.shape[1]
        tag = self.tag = self.transport.begin("broadcast", width)
        sources = self.source_rows(rows) if into is None else into
        most = _piece_rows(rows) if in_pieces or self.transport.in_pieces else None
        self._receiving = self._post_receives(sources, plan.source_indptr, tag, most)
        self._wait_until_sent("broadcast")
        self._arriving = sources
        if most is None:
            packed = self._buffer("packed", plan.broadcast_indptr[-1], rows)
            with self.transport.counters.timing("pack_seconds"):
                kernels.pack_rows(rows, plan.broadcast_rows, out=packed)
            self._post_sends("broadcast", packed, plan.broadcast_indptr)
            return
        packed = self._buffer("packed", 2 * most, rows)
        halves: list[list[MPI.Request]] = [[], []]
        by_rank = _by_rank(plan.broadcast_rows, plan.broadcast_indptr)
        for number, (rank, chosen) in enumerate(
            (rank, some) for rank, rows_of in by_rank for some in _pieces(rows_of, most)
        ):
            half = number % 2
            self.transport.wait(halves[half], tag)
            out = packed[half * most :][: len(chosen)]
            with self.transport.counters.timing("pack_seconds"):
                if rows.flags.c_contiguous:
                    kernels.pack_rows(rows, chosen, out=out)
                else:  # some of the columns
                    out[...] = rows[chosen]
            halves[half] = self.transport.send(out, rank, tag)
        self.messages.sending["broadcast"] += halves[0] + halves[1]

    def finish_broadcast(self) -> np.ndarray:
        """Wait for the source halos and return them, [S, D]; valid until the graph's next broadcast.

        Collective: yes.
        """
        return self.arrived()

    def arrived(self) -> np.ndarray:
        """Wait for what the last start asked for and return it: [S, D], or partial sums [R, D] of other ranks."""
        self.transport.wait(self._receiving, self.tag)
        arrived, self._arriving, self._receiving = self._arriving, np.empty((0, 0)), []
        return arrived

    def source_rows(self, like: np.ndarray) -> np.ndarray:
        """The buffer [S, D] that source halos arrive in, with the width and dtype of `like` [*, D]: to be written by a
        caller that has them."""
        return self._buffer("sources", self.plan.source_indptr[-1], like)

    def target_rows(self, like: np.ndarray) -> np.ndarray:
        """The buffer [T, D] for partial sums of target halos, with the width and dtype of `like` [*, D]."""
        self._wait_until_sent("reduce")
        return self._buffer("targets", self.plan.target_indptr[-1], like)

    def start_reduce(self, targets: np.ndarray, into: np.ndarray | None = None) -> None:
        """Start sending partial sums `targets` [T, D] to the owners. Collective: yes.

        Args:
            targets: left alone until the next `target_rows`, or until `drain`.
            into: [R, D], where those for this rank arrive; the caller leaves it alone until `finish_reduce`.
        """
        self.tag = self.transport.begin("reduce", targets.shape[1])
        partials = self._buffer("partials", self.plan.reduce_indptr[-1], targets) if into is None else into
        self._receiving = self._post_receives(partials, self.plan.reduce_indptr, self.tag)
        self._arriving = partials
        self._post_sends("reduce", targets, self.plan.target_indptr)

    def target_pieces(self) -> list[slice]:
        """The target halos whose partial sums are sent: all."""
        return [slice(0, int(self.plan.target_indptr[-1]))]

    def finish_reduce(self, out: np.ndarray) -> None:
        """Wait for the partial sums of other ranks and add them to owned rows `out` [O, D], in the order of ranks.

        Collective: yes.
        """
        self.add_partials(out, self.arrived())

    def reduce_made(self, make: Callable[[slice, np.ndarray], object], out: np.ndarray) -> None:
        """A reduce onto `out` [O, D] whose partial sums are never whole, with the same bits. Collective: yes.

        Pairs of ranks exchange pieces both ways, one pair after the other in an order that all ranks have: none waits
        for a rank that waits for it.

        Args: make: called as make(target halos, into): writes their partial sums; out: maybe some columns of an array.
        """
        self.drain()
        tag, most = self.transport.begin("reduce", out.shape[1]), _piece_rows(out)
        leaving, arriving = (self._buffer(role, most, out) for role in ("targets", "partials"))
        for rank in range(self.plan.num_parts):
            first, end = (int(self.plan.target_indptr[place]) for place in (rank, rank + 1))
            mine = [slice(start, min(start + most, end)) for start in range(first, end, most)]
            for piece, rows in zip_longest(mine, _pieces(self.reduced_rows(rank), most)):
                arrived = arriving[: 0 if rows is None else len(rows)]
                under_way = self.transport.receive(arrived, rank, tag) if rows is not None else []
                if piece is not None:
                    made = leaving[: piece.stop - piece.start]
                    make(piece, made)
                    under_way += self.transport.send(made, rank, tag)
                self.transport.wait(under_way, tag)
                if rows is not None:
                    with self.transport.counters.timing("pack_seconds"):
                        if out.flags.c_contiguous:
                            kernels.add_rows(out, rows, arrived)
                        else:
                            out[rows] += arrived

    def add_partials(self, out: np.ndarray, partials: np.ndarray) -> None:
        """Add `partials` (in the order of the plan's reduce rows) to `out` [O, D], one rank after the other."""
        indptr = self.plan.reduce_indptr
        with self.transport.counters.timing("pack_seconds"):
            for rank in range(self.plan.num_parts):
                if indptr[rank + 1] > indptr[rank]:
                    kernels.add_rows(out, self.reduced_rows(rank), partials[indptr[rank] : indptr[rank + 1]])

    def reduced_rows(self, rank: int) -> np.ndarray:
        indptr = self.plan.reduce_indptr
        return self.plan.reduce_rows[indptr[rank] : indptr[rank + 1]]

    def reduce_by_rank(self, targets: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Send partial rows `targets` [T, D] to the owners: (owned rows, another rank's partial rows), in the order of
        ranks, for reductions that are no sum.

        Collective: yes. Nothing of it is kept.
        """
        self.drain()
        received = np.empty((int(self.plan.reduce_indptr[-1]), targets.shape[1]), targets.dtype)
        self.start_reduce(targets, into=received)
        self.arrived()
        self.drain()
        for rank, partial in _by_rank(received, self.plan.reduce_indptr):
            yield self.reduced_rows(rank), partial

    def progress(self) -> bool:
        """Let MPI move what is in flight: called between kernels, so that messages travel while they run.

        Returns: has everything arrived that the last start asked for?
        """
        arrived = are_complete(self._receiving)
        if arrived:  # asking for what is complete moves nothing, and this rank's rows may still be on their way
            self.transport.progress()
        return arrived

    def drain(self) -> None:
        """Wait until nothing that the graph's exact exchanges send is in flight."""
        for verb in self.messages.sending:
            self._wait_until_sent(verb)

    def release(self, *roles: str) -> None:
        """Give back the memory of messages that are sent and of what was received, by `roles`.

        For a graph whose training steps are late or narrow: only warm-up and evaluation send messages of this kind.
        """
        self._wait_until_sent("broadcast")
        self.messages.give_back(*roles)

    def blocks(self) -> list[tuple[str, object]]:
        return self.messages.blocks()

    def buffer_bytes(self) -> int:
        return 0

    def _wait_until_sent(self, verb: str) -> None:
        sending = self.messages.sending
        self.transport.wait(sending[verb])
        sending[verb] = []

    def _buffer(self, role: str, num_rows: int, like: np.ndarray) -> np.ndarray:
        return self.messages.rows(role, int(num_rows), like)

    def _post_receives(
        self, rows: np.ndarray, indptr: np.ndarray, tag: int, most: int | None = None
    ) -> list[MPI.Request]:
        return [
            request
            for rank, part in _by_rank(rows, indptr)
            for some in _pieces(part, most or len(part))
            for request in self.transport.receive(some, rank, tag)
        ]

    def _post_sends(self, verb: str, rows: np.ndarray, indptr: np.ndarray) -> None:
        for rank, part in _by_rank(rows, indptr):
            self.messages.sending[verb] += self.transport.send(part, rank, self.tag)


def _piece_rows(like: np.ndarray) -> int:
    """Rows of a piece, with the width and dtype of `like` [*, D]."""
    return max(1, PIECE_BYTES // max(1, like.shape[1] * like.itemsize))


def _pieces(rows: np.ndarray, most: int) -> list[np.ndarray]:
    """Contiguous `rows`, at most `most` at a time."""
    return [rows[first : first + most] for first in range(0, len(rows), most)]


def _by_rank(rows: np.ndarray, indptr: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The contiguous rows that travel to or from each rank; ranks with none are left out."""
    for rank in np.flatnonzero(np.diff(indptr)):
        yield int(rank), rows[indptr[rank] : indptr[rank + 1]]
