"""Held rows of a channel: what counts until a message of their bin arrives.

Legend: R rows received over all bins, n those of one bin, D width, b bytes of a row on the wire.

    WideRows     [R, D]               what arrives is written over them, or averaged with them
    CodedRows    R b bytes by bin     what arrived is held as it is, and widened where it is read: the same numbers

Rows of warm-up epochs travel whole. CodedRows hold them so, until a message of their bin takes their place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from distgnn import kernels
from distgnn.comm.exchange import Exchange
from distgnn.comm.page_memory import page_aligned_zeros
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

    def hold(self, rows: np.ndarray) -> None:
        """Rows [R, D] of a warm-up epoch count from now on."""
        if rows is not self.rows:
            np.copyto(self.rows, rows)

    def take(self, number: int, received: np.ndarray) -> np.ndarray:
        """The message of a bin counts from now on. Returns: a buffer for its next one."""
        packed, first = self.wire.rows(received, self.rows), 0
        for of_rank in self.pieces[number]:
            for piece in of_rank:
                last = first + piece.stop - piece.start
                self._hold(piece, packed[first:last])
                first = last
        return received

    def give_up(self, _: int) -> np.ndarray | None:
        """The bin no longer counts: None, as it has no memory alone."""
        return None

    def _hold(self, piece: slice, packed: np.ndarray) -> None:
        if not self.late_row_average:
            self.wire.decode(packed, self.rows[piece])
            return
        arrived = np.empty((len(packed), self.rows.shape[1]), self.rows.dtype)
        self.wire.decode(packed, arrived)
        arrived *= 1 - self.late_row_average
        arrived += self.rows[piece] * np.asarray(self.late_row_average, self.rows.dtype)
        self.rows[piece] = arrived

    def sources(self, _: Exchange) -> np.ndarray:
        """All of them, [R, D]."""
        return self.rows

    def add_to(self, out: np.ndarray, exchange: Exchange) -> None:
        """Add them, which are partial sums, to owned rows `out` [O, D], in the exchange's order of ranks."""
        exchange.add_partials(out, self.rows)

    def num_bytes(self) -> int:
        """Memory of the rows."""
        return self.rows.nbytes

    def state(self) -> dict[str, np.ndarray]:
        """What `load_state` takes up."""
        return {"held": self.rows}

    def shapes(self, name: str) -> list[tuple[tuple[int, ...], np.dtype]]:
        """Shapes and dtypes that an array of the state may have."""
        return [(self.rows.shape, self.rows.dtype)] if name == "held" else []

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Hold the rows of a `state`."""
        self.hold(state["held"])


@dataclass
class CodedRows:
    """Rows as they arrived, float32 on a narrow wire.

    Args: like: [0, D]; num_rows: R.
    """

    wire: Wire
    pieces: Pieces
    like: np.ndarray
    num_rows: int
    _bins: dict[int, tuple[Wire, np.ndarray]] = field(default_factory=dict)  # bytes, and the wire they came by

    @cached_property
    def _whole(self) -> Wire:
        return replace(self.wire, name="float32")

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

    def hold(self, rows: np.ndarray) -> None:
        """Rows [R, D] of a warm-up epoch count from now on."""
        for number in range(len(self.pieces)):
            wire, packed = self._bins.pop(number, (None, None))
            if wire is not self._whole or packed is None:
                packed = page_aligned_zeros((self._num_rows(number) * self.like.shape[1] * rows.itemsize,), np.uint8)
            self._bins[number] = self._whole, packed
        for places in self._places:
            for number, piece, first in places:
                held = self._whole.rows(self._bins[number][1], self.like)
                held[first : first + piece.stop - piece.start] = rows[piece]

    def take(self, number: int, received: np.ndarray) -> np.ndarray | None:
        """The message of a bin counts from now on. Returns: a buffer for its next one, None where there is none."""
        wire, free = self._bins.get(number, (None, None))
        self._bins[number] = self.wire, received
        return free if wire is self.wire else None

    def give_up(self, number: int) -> np.ndarray | None:
        """The bin no longer counts: its memory, None where there is none."""
        return self._bins.pop(number, (None, None))[1]

    def sources(self, exchange: Exchange) -> np.ndarray:
        """All of them widened, [R, D], in memory of the exchange's messages."""
        with exchange.transport.counters.timing("pack_seconds"):
            return self.widen(exchange.source_rows(self.like))

    def widen(self, out: np.ndarray) -> np.ndarray:
        """out = all of them, [R, D]; those of which nothing was received are 0."""
        for places in self._places:
            for number, piece, first in places:
                packed = self._packed(number, first, piece.stop - piece.start)
                if packed is None:
                    out[piece] = 0
                else:
                    self._bins[number][0].decode(packed, out[piece])
        return out

    def add_to(self, out: np.ndarray, exchange: Exchange) -> None:
        """Add them, which are partial sums, to owned rows `out` [O, D], in the exchange's order of ranks."""
        targets = exchange.plan.reduce_rows
        with exchange.transport.counters.timing("pack_seconds"):
            for rank in exchange.order:
                for number, piece, first in self._places[rank]:
                    for start, rows in self._widened(number, first, piece.stop - piece.start):
                        begin = piece.start + start
                        kernels.add_rows(out, targets[begin : begin + len(rows)], rows)

    def _widened(self, number: int, first: int, num_rows: int) -> Iterator[tuple[int, np.ndarray]]:
        """Some rows of a bin, block by block: (number of the block's first row, rows)."""
        packed = self._packed(number, first, num_rows)
        if packed is None:
            return
        wire = self._bins[number][0]
        if wire.whole:
            yield 0, packed
            return
        size = max(1, BLOCK_BYTES // max(1, self.like.shape[1] * self.like.itemsize))
        block = np.empty((min(size, num_rows), self.like.shape[1]), self.like.dtype)
        for start in range(0, num_rows, size):
            some = packed[start : start + size]
            wire.decode(some, block[: len(some)])
            yield start, block[: len(some)]

    def _packed(self, number: int, first: int, num_rows: int) -> np.ndarray | None:
        """Some rows of a bin as they are held; None: nothing was received."""
        if number not in self._bins:
            return None
        wire, received = self._bins[number]
        return wire.rows(received, self.like)[first : first + num_rows]

    def _num_rows(self, number: int) -> int:
        return sum(piece.stop - piece.start for of_rank in self.pieces[number] for piece in of_rank)

    def num_bytes(self) -> int:
        """Memory of the rows."""
        return sum(received.nbytes for _, received in self._bins.values())

    def state(self) -> dict[str, np.ndarray]:
        """What `load_state` takes up: "width" int64 [1], and of each bin [n, b] bytes, or [n, D] of a warm-up epoch."""
        held = {f"held.{number}": wire.rows(rows, self.like) for number, (wire, rows) in self._bins.items()}
        return {"width": np.array([self.like.shape[1]], np.int64)} | held

    def shapes(self, name: str) -> list[tuple[tuple[int, ...], np.dtype]]:
        """Shapes and dtypes that an array of the state may have; "held": all rows widened, of earlier versions."""
        width = self.like.shape[1]
        found: dict[str, list[tuple[tuple[int, ...], np.dtype]]] = {
            "held": [((self.num_rows, width), self.like.dtype)],
            "width": [((1,), np.dtype(np.int64))],
        }
        for number in range(len(self.pieces)):
            rows = self._num_rows(number)
            coded = (rows, self.wire.row_bytes(self.like)), np.dtype(np.uint8)
            found[f"held.{number}"] = [coded, ((rows, width), self.like.dtype)]
        return found.get(name, [])

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Hold the rows of a `state`."""
        if "held" in state:
            self.hold(state["held"])
        for number in range(len(self.pieces)):
            rows = state.get(f"held.{number}")
            if rows is not None:
                wire = self.wire if rows.dtype == np.uint8 else self._whole
                self._bins[number] = wire, rows.copy().reshape(-1).view(np.uint8)
