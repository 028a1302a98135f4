"""Parcels: the bytes of one bin that travel between two ranks, whole or with flags that say which rows are in it.

Legend: n rows of a bin for one rank, k <= n of them sent, b bytes of a row on the wire.

    every row travels    [ row 0 | row 1 | … | row n - 1 ]                         n b bytes
    only what moved      [ flags: 1 bit per row, in words of 8 bytes | k rows ]    8 ceil(n / 64) + k b bytes

Flags stand in the order of the bin, which both ends know: ids never travel. At width 256 flags cost 1/2080 of the rows
with int8, and an epoch in which nothing moved 1 bit per row.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from distgnn.comm.lasting import lasting_rows

ALIGNED = 64


@dataclass(frozen=True)
class Parcel:
    """One rank's share of a bin.

    Args:
        rank: where it goes to or comes from.
        pieces: its rows, in the numbering of the leg.
        num_rows: n.
        flag_bytes: 0, or the bytes of the flags.
        room: its bytes in the buffer of the bin.
    """

    rank: int
    pieces: list[slice]
    num_rows: int
    flag_bytes: int
    room: slice

    def numbers(self) -> np.ndarray:
        """The rows' numbers in the leg, int32 [n]."""
        return np.concatenate([np.arange(piece.start, piece.stop, dtype=np.int32) for piece in self.pieces])

    def put_flags(self, room: np.ndarray, sent: np.ndarray) -> None:
        """Write which rows are sent, bool [n]."""
        bits = np.packbits(sent)
        room[: self.flag_bytes] = 0
        room[: len(bits)] = bits

    def flags(self, room: np.ndarray) -> np.ndarray:
        """Which rows were sent, bool [n]."""
        return np.unpackbits(room[: self.flag_bytes], count=self.num_rows).astype(bool)


def parcels(pieces: list[list[slice]], row_bytes: int, flagged: bool) -> Iterator[Parcel]:
    """The parcels of a bin, for every rank that has rows in it; `pieces` by rank."""
    first = 0
    for rank, of_rank in enumerate(pieces):
        num_rows = sum(piece.stop - piece.start for piece in of_rank)
        if num_rows:
            flag_bytes = 8 * -(-num_rows // 64) if flagged else 0
            room = slice(first, first + flag_bytes + num_rows * row_bytes)
            yield Parcel(rank, of_rank, num_rows, flag_bytes, room)
            first = ALIGNED * -(-room.stop // ALIGNED) if flagged else room.stop


def room_for(found: list[Parcel]) -> np.ndarray:
    """A buffer for all parcels of a bin."""
    return lasting_rows((found[-1].room.stop if found else 0,), np.uint8)
