"""One leg of a delayed exchange: what it holds, what is in flight, and what is done with rows that leave and arrive.

Legend: n rows of one parcel, D width. A leg is a broadcast or a reduce of one exchange site, forward or backward.

    leaving    [x + residual] -> encoded -> residual = what rounding lost              (error feedback)
               only rows with |x - sent last| > bound * |sent last|                    (adaptive)
    arriving   held = arrived, or held = smooth * held + (1 - smooth) * arrived        (smoothing)

Source: error feedback: Seide et al., Interspeech'14; smoothing: PipeGCN (Wan et al., ICLR'22); skipping rows that have
hardly moved: SANCUS (Peng et al., VLDB'22). The bound per row and both directions are ours.
"""

from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

from distgnn.comm.lasting import lasting_rows
from distgnn.comm.parcels import Parcel, parcels, room_for
from distgnn.comm.wire import Wire


@dataclass(frozen=True)
class Care:
    """What is done with rows that leave and arrive.

    Args:
        smooth: weight of the held row when one arrives (0: replaced).
        adaptive: share of its norm by which a row must have moved to be sent (0: all are sent).
        error_feedback: add what rounding lost to the row's next message.
    """

    smooth: float = 0.0
    adaptive: float = 0.0
    error_feedback: bool = False


@dataclass
class Leg:
    """What one leg holds: `held` rows, and per bin a message in flight in each direction.

    `residual` and `reference` (what was sent last; NaN: never) are there where error feedback and adaptive sending
    need them, one row per row that the leg sends.
    """

    verb: str
    wire: Wire
    care: Care
    held: np.ndarray
    residual: np.ndarray | None = None
    reference: np.ndarray | None = None
    sent: dict[int, np.ndarray] = field(default_factory=dict)
    received: dict[int, np.ndarray] = field(default_factory=dict)
    requests: dict[int, list[MPI.Request]] = field(default_factory=dict)

    @classmethod
    def empty(cls, verb: str, wire: Wire, care: Care, num_sent: int, held: np.ndarray) -> "Leg":
        """A leg that has sent nothing; it sends `num_sent` rows and starts from `held`."""
        leg = cls(verb, wire, care, held)
        if care.error_feedback:
            leg.residual = lasting_rows((num_sent, held.shape[1]), held.dtype)
        if care.adaptive:
            leg.reference = lasting_rows((num_sent, held.shape[1]), held.dtype)
            leg.reference[:] = np.nan
        return leg

    def parcels(self, pieces: list[list[slice]]) -> list[Parcel]:
        """The parcels of a bin of this leg."""
        return list(parcels(pieces, self.wire.row_bytes(self.held), self.care.adaptive > 0))

    def rooms(self, number: int, leaving: list[Parcel], arriving: list[Parcel]) -> tuple[np.ndarray, np.ndarray]:
        """The buffers of a bin, made when it is first sent."""
        if number not in self.sent:
            self.sent[number] = room_for(leaving)
        if number not in self.received:
            self.received[number] = room_for(arriving)
        return self.sent[number], self.received[number]

    def pack(self, parcel: Parcel, room: np.ndarray, rows: np.ndarray, chosen: np.ndarray, key: tuple) -> int:
        """Write a parcel of `rows` (the leg's row i is rows[chosen[i]]) into `room`; returns the bytes to send."""
        numbers, ids = parcel.numbers(), self.wire.ids(self.verb)
        if self.reference is not None:
            moved = self._moved(rows, chosen[numbers], numbers)
            parcel.put_flags(room, moved)
            numbers = numbers[moved]
        filled = parcel.flag_bytes + len(numbers) * self.wire.row_bytes(self.held)
        if len(numbers) == 0:
            return filled
        out = self.wire.rows(room[parcel.flag_bytes : filled], self.held)
        if self.residual is None:
            self.wire.encode(self.verb, rows, chosen[numbers], ids, out, key)
            return filled
        whole = rows[chosen[numbers]] + self.residual[numbers]
        everything = np.arange(len(whole), dtype=np.int32)
        self.wire.encode(self.verb, whole, everything, ids[chosen[numbers]], out, key)
        arrives = np.empty_like(whole)
        self.wire.decode(out, arrives)
        self.residual[numbers] = whole - arrives
        return filled

    def _moved(self, rows: np.ndarray, chosen: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Which rows have moved by more than the bound since they were sent; they become the reference. bool [n]"""
        now, before = rows[chosen], self.reference[numbers]
        drift = now - before
        bound = self.care.adaptive**2 * np.einsum("ij,ij->i", before, before)
        moved = ~(np.einsum("ij,ij->i", drift, drift) <= bound)  # NaN: never sent
        self.reference[numbers[moved]] = now[moved]
        return moved

    def unpack(self, parcel: Parcel, room: np.ndarray) -> None:
        """What arrived becomes held."""
        width = self.wire.row_bytes(self.held)
        if self.care.adaptive:
            numbers = parcel.numbers()[parcel.flags(room)]
            end = parcel.flag_bytes + len(numbers) * width
            self._hold(numbers, self.wire.rows(room[parcel.flag_bytes : end], self.held))
            return
        packed, first = self.wire.rows(room, self.held), 0
        for piece in parcel.pieces:
            last = first + piece.stop - piece.start
            self._hold(piece, packed[first:last])
            first = last

    def _hold(self, place, packed: np.ndarray) -> None:
        """held[place] takes up the packed rows."""
        if isinstance(place, slice) and not self.care.smooth:
            self.wire.decode(packed, self.held[place])
            return
        arrived = np.empty((len(packed), self.held.shape[1]), self.held.dtype)
        if len(packed):
            self.wire.decode(packed, arrived)
        if self.care.smooth:
            arrived *= 1 - self.care.smooth
            arrived += self.held[place] * np.asarray(self.care.smooth, self.held.dtype)
        self.held[place] = arrived

    def remember(self, rows: np.ndarray, chosen: np.ndarray) -> None:
        """An exact epoch: what was sent is the reference of adaptive sending."""
        if self.reference is not None:
            np.take(rows, chosen, axis=0, out=self.reference)

    def num_bytes(self) -> int:
        """Memory of everything that the leg holds."""
        kept = [self.held, self.residual, self.reference, *self.sent.values(), *self.received.values()]
        return sum(buffer.nbytes for buffer in kept if buffer is not None)

    def state(self, pending: bool) -> dict[str, np.ndarray]:
        """What the leg must have to go on to the same bits; nothing may be in flight any more."""
        state = {"held": self.held, "residual": self.residual, "reference": self.reference}
        if pending:
            state |= {f"pending.{number}": self.received[number] for number in self.requests}
        return {name: array.copy() for name, array in state.items() if array is not None}

    def take_state(self, state: dict[str, np.ndarray]) -> None:
        """Become the leg whose `state` this is."""
        for name, array in state.items():
            if name.startswith("pending."):
                number = int(name.removeprefix("pending."))
                self.received[number], self.requests[number] = array.copy(), []
            else:
                np.copyto(getattr(self, name), array)
