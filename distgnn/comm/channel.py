"""Channel: one verb (broadcast or reduce) of one exchange site, forward or backward, under a schedule.

Legend: n rows of one message, R rows received over all bins, D width, b bytes of a row on the wire.

    sending      rows -> encoded at the width of the wire -> a message per rank, n b bytes
    receiving    what arrived is held, or averaged with what is held

Buffers, all owned by the channel and kept as long as the graph:

    held       what counts (WideRows, CodedRows); the layer that asks for the rows reads them in the same call
    sent       one, as large as the largest bin; from `transport.send` until `sending` is waited for MPI reads it
    received   one per bin; from `transport.receive` until the bin's requests are complete MPI writes it: not read

A bin's requests are complete after `DelayedExchange.take` of that bin, at the latest r epochs after they were started.
A message leaves in the epoch in which it is sent, as all ranks receive it in that epoch: the next one of the channel
waits for it without waiting for a rank.

    WideRows     [R, D]               what arrives is written over them, or averaged with them
    CodedRows    R b bytes by bin     what arrived is held as it is, and widened where it is read: the same numbers

Rows of warm-up epochs travel whole, and arrive where they are held. CodedRows hold them so, [R, D], until a message of
their bin takes their place; then their pages go back to the system.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from mpi4py import MPI

from distgnn import kernels
from distgnn.comm.exchange import Exchange
from distgnn.comm.transport import leave_pages, page_aligned_zeros
from distgnn.comm.wire import Wire

BLOCK_BYTES = 1 << 21  # of widened rows that are added at once: they stay in a cache

Pieces = Sequence[list[list[slice]]]  # of each bin, by rank: rows of the channel


@dataclass
class WideRows:
    """Rows as wide as the layer's.

    Args: late_row_average: weight of the held row when one arrives (0: it is replaced).
    """

    wire: Wire
    pieces: Pieces
    rows: np.ndarray
    late_row_average: float

    @property
    def like(self) -> np.ndarray:
        """[0, D] in the dtype of the rows."""
        return self.rows[:0]

    def place(self) -> np.ndarray:
        """Where rows [R, D] of a warm-up epoch may arrive."""
        return self.rows

    def hold(self) -> None:
        """The rows of a warm-up epoch, which are in their `place`, count from now on."""

    def take(self, number: int, received: np.ndarray) -> np.ndarray:
        """The message of a bin counts from now on. Returns: a buffer for its next one."""
        packed, first = self.wire.rows(received, self.rows), 0
        for of_rank in self.pieces[number]:
            for piece in of_rank:
                last = first + piece.stop - piece.start
                if self.late_row_average:
                    arrived = np.empty((last - first, self.rows.shape[1]), self.rows.dtype)
                    self.wire.decode(packed[first:last], arrived)
                    arrived *= 1 - self.late_row_average
                    arrived += self.rows[piece] * np.asarray(self.late_row_average, self.rows.dtype)
                    self.rows[piece] = arrived
                else:
                    self.wire.decode(packed[first:last], self.rows[piece])
                first = last
        return received

    def give_up(self, _: int) -> np.ndarray | None:
        """The bin no longer counts: None, as it has no memory alone."""
        return None

    def sources(self, _: Exchange) -> np.ndarray:
        return self.rows

    def add_to(self, out: np.ndarray, exchange: Exchange) -> None:
        """Add them, which are partial sums, to owned rows `out` [O, D], in the exchange's order of ranks."""
        exchange.add_partials(out, self.rows)

    def num_bytes(self) -> int:
        return self.rows.nbytes

    def state(self) -> dict[str, np.ndarray]:
        """What `load_state` takes up."""
        return {"held": self.rows}

    def shapes(self, name: str) -> list[tuple[tuple[int, ...], np.dtype]]:
        """Shapes and dtypes that an array of the state may have."""
        return [(self.rows.shape, self.rows.dtype)] if name == "held" else []

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        np.copyto(self.rows, state["held"])


@dataclass
class CodedRows:
    """Rows as they arrived, float32 on a narrow wire; methods as of `WideRows`.

    Args: like: [0, D]; num_rows: R.
    """

    wire: Wire
    pieces: Pieces
    like: np.ndarray
    num_rows: int
    _bins: dict[int, np.ndarray] = field(default_factory=dict)  # bytes as they arrived
    _whole: np.ndarray | None = None  # [R, D] of the bins in `_are_whole`
    _are_whole: set[int] = field(default_factory=set)

    @cached_property
    def _places(self) -> list[list[tuple[int, slice, int]]]:
        """By rank: (bin, rows of the channel, the first of these in the bin)."""
        places: list[list[tuple[int, slice, int]]] = [[] for _ in self.pieces[0]]
        for number, by_rank in enumerate(self.pieces):
            first = 0
            for rank, of_rank in enumerate(by_rank):
                for piece in of_rank:
                    places[rank].append((number, piece, first))
                    first += piece.stop - piece.start
        return places

    def place(self) -> np.ndarray:
        if self._whole is None:
            self._whole = page_aligned_zeros((self.num_rows, self.like.shape[1]), self.like.dtype)
        return self._whole

    def hold(self) -> None:
        self._bins.clear()
        self._are_whole = set(range(len(self.pieces)))

    def take(self, number: int, received: np.ndarray) -> np.ndarray | None:
        free = self.give_up(number)
        self._bins[number] = received
        return free

    def give_up(self, number: int) -> np.ndarray | None:
        if number in self._are_whole and self._whole is not None:
            self._are_whole.remove(number)
            for piece in chain(*self.pieces[number]):
                leave_pages(self._whole, piece)
            if not self._are_whole:
                self._whole = None
        return self._bins.pop(number, None)

    def sources(self, exchange: Exchange) -> np.ndarray:
        """All of them widened, [R, D], in memory of the exchange's messages where they are not held so."""
        if self._whole is not None and len(self._are_whole) == len(self.pieces):
            return self._whole
        with exchange.transport.counters.timing("pack_seconds"):
            return self.widen(exchange.source_rows(self.like))

    def widen(self, out: np.ndarray) -> np.ndarray:
        """out = all of them, [R, D]; rows that were not received are 0."""
        for places in self._places:
            for number, piece, first in places:
                if number in self._bins:
                    self.wire.decode(self._packed(number, first, piece), out[piece])
                else:
                    out[piece] = self._rows(number, piece)
        return out

    def add_to(self, out: np.ndarray, exchange: Exchange) -> None:
        targets = exchange.plan.reduce_rows
        with exchange.transport.counters.timing("pack_seconds"):
            for rank in range(exchange.plan.num_parts):
                for number, piece, first in self._places[rank]:
                    for start, rows in self._widened(number, first, piece):
                        begin = piece.start + start
                        kernels.add_rows(out, targets[begin : begin + len(rows)], rows)

    def _widened(self, number: int, first: int, piece: slice) -> Iterator[tuple[int, np.ndarray]]:
        """Some rows of a bin, block by block: (number of the block's first row, rows); none where nothing came."""
        if number not in self._bins:
            if number in self._are_whole:
                yield 0, self._rows(number, piece)
            return
        packed, num_rows = self._packed(number, first, piece), piece.stop - piece.start
        size = max(1, BLOCK_BYTES // max(1, self.like.shape[1] * self.like.itemsize))
        block = np.empty((min(size, num_rows), self.like.shape[1]), self.like.dtype)
        for start in range(0, num_rows, size):
            some = packed[start : start + size]
            self.wire.decode(some, block[: len(some)])
            yield start, block[: len(some)]

    def _packed(self, number: int, first: int, piece: slice) -> np.ndarray:
        return self.wire.rows(self._bins[number], self.like)[first : first + piece.stop - piece.start]

    def _rows(self, number: int, piece: slice) -> np.ndarray:
        """Rows of a bin that is whole; 0 where nothing was received."""
        if number in self._are_whole and self._whole is not None:
            return self._whole[piece]
        return np.zeros((piece.stop - piece.start, self.like.shape[1]), self.like.dtype)

    def _num_rows(self, number: int) -> int:
        return sum(piece.stop - piece.start for of_rank in self.pieces[number] for piece in of_rank)

    def num_bytes(self) -> int:
        row_bytes = self.like.shape[1] * self.like.itemsize
        whole = sum(self._num_rows(number) for number in self._are_whole) * row_bytes
        return whole + sum(received.nbytes for received in self._bins.values())

    def state(self) -> dict[str, np.ndarray]:
        """What `load_state` takes up: "width" int64 [1], and of each bin [n, b] bytes, or [n, D] of a warm-up epoch."""
        held = {number: self.wire.rows(rows, self.like) for number, rows in self._bins.items()}
        for number in self._are_whole:
            rows = [self._rows(number, piece) for piece in chain(*self.pieces[number])]
            held[number] = np.concatenate([self._rows(number, slice(0, 0)), *rows])
        width = np.array([self.like.shape[1]], np.int64)
        return {"width": width} | {f"held.{number}": rows for number, rows in held.items()}

    def shapes(self, name: str) -> list[tuple[tuple[int, ...], np.dtype]]:
        width = self.like.shape[1]
        found: dict[str, list[tuple[tuple[int, ...], np.dtype]]] = {"width": [((1,), np.dtype(np.int64))]}
        for number in range(len(self.pieces)):
            rows = self._num_rows(number)
            coded = (rows, self.wire.row_bytes(self.like)), np.dtype(np.uint8)
            found[f"held.{number}"] = [coded, ((rows, width), self.like.dtype)]
        return found.get(name, [])

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        for number in range(len(self.pieces)):
            rows = state.get(f"held.{number}")
            if rows is not None and rows.dtype == np.uint8:
                self._bins[number] = rows.copy().reshape(-1)
            elif rows is not None:
                ends = np.cumsum([piece.stop - piece.start for piece in chain(*self.pieces[number])])
                for piece, some in zip(chain(*self.pieces[number]), np.split(rows, ends[:-1]), strict=True):
                    self.place()[piece] = some
                self._are_whole.add(number)


class Message(NamedTuple):
    """The rows of one bin that travel between this rank and another: whom, the rows as pieces in the numbering of the
    channel, and their bytes in the buffer of the bin."""

    rank: int
    pieces: list[slice]
    place: slice


def num_bytes_of(messages: list[Message]) -> int:
    return messages[-1].place.stop if messages else 0


@dataclass
class Channel:
    """Held rows, and for each bin the message in flight: `received` and `requests` are by number of the bin.

    `sent` holds the messages that leave, and `sending` their requests. `tag` is the last messages' tag.
    """

    verb: str
    held: WideRows | CodedRows
    tag: int = 0
    received: dict[int, np.ndarray] = field(default_factory=dict)
    requests: dict[int, list[MPI.Request]] = field(default_factory=dict)
    sent: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8))
    sending: list[MPI.Request] = field(default_factory=list)
    free: dict[int, np.ndarray] = field(default_factory=dict)

    def messages(self, pieces: list[list[slice]]) -> list[Message]:
        """The messages of a bin, one behind the other in its buffer; `pieces` by rank, ranks without rows left out."""
        found, first, row_bytes = [], 0, self.held.wire.row_bytes(self.held.like)
        for rank, of_rank in enumerate(pieces):
            last = first + row_bytes * sum(piece.stop - piece.start for piece in of_rank)
            if last > first:
                found.append(Message(rank, of_rank, slice(first, last)))
            first = last
        return found

    def num_bytes(self) -> int:
        buffers = (self.sent, *self.received.values(), *self.free.values())
        return self.held.num_bytes() + sum(buffer.nbytes for buffer in buffers)

    def state(self) -> dict[str, np.ndarray]:
        """What the channel must have to go on to the same bits, as copies; nothing may be in flight any more."""
        state = self.held.state() | {f"pending.{number}": received for number, received in self.received.items()}
        return {name: array.copy() for name, array in state.items()}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self.held.load_state(state)
        for name, array in state.items():
            if name.startswith("pending."):
                number = int(name.removeprefix("pending."))
                self.received[number], self.requests[number] = array.copy(), []
