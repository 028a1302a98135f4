"""Groups of ranks that share a part: each has a range of its owned rows, and a range of columns for aggregation.

Legend: P parts, t ranks of a group, O owned rows of a part, n a rank's (about O / t), D width,
w = ceil(D / t) columns of a rank (the last ones have zeros behind theirs).

    rank p t + c    part p, rows c of t, columns c of t

    rows [n, D] of every rank --- to_columns ---> columns [O, w]      each rank gets its columns of all rows
    columns [O, w] ------------- to_rows -------> rows [n, D]         the transpose, and the way back

Ranks with the same columns exchange halo rows among themselves, by the plan of P parts.

Source: aggregation by columns between two all-to-alls is NeutronTP's (Ai et al., PVLDB 18(2), 2024), over all ranks and
without a cut; vertices and columns are split at once in CAGNET's 2-D and 3-D forms (Tripathy et al., SC'20).
"""

from collections.abc import Iterator

import numpy as np
import torch
from mpi4py import MPI

from distgnn.comm.page_memory import page_aligned_zeros
from distgnn.comm.transport import Transport


def row_bounds(num_rows: int, num_columns: int) -> np.ndarray:
    """Where each rank's range of a part's owned rows begins and ends, int64 [t + 1]."""
    return num_rows * np.arange(num_columns + 1, dtype=np.int64) // num_columns


class ColumnGroup:
    """Moves rows within one group, by the transport of all ranks: what it sends is counted as all else.

    Collective: every start and finish, over all groups in the same order.

    Args: num_rows: O.

    Notes: one call of each kind may be in flight.
    """

    def __init__(self, transport: Transport, num_columns: int, num_rows: int):
        self.transport = transport
        self.num_columns = num_columns
        self.first: int = transport.rank // num_columns * num_columns
        self.me: int = transport.rank % num_columns
        self.bounds: np.ndarray = row_bounds(num_rows, num_columns)
        self._buffers: dict[tuple, np.ndarray] = {}
        self._sending: dict[str, list[MPI.Request]] = {"to_columns": [], "to_rows": []}
        self._receiving: list[MPI.Request] = []
        self._tag = 0

    @property
    def own_rows(self) -> slice:
        return self._rows_of(self.me)

    def start_columns(self, rows: np.ndarray, role: str = "columns") -> None:
        """Start sending this rank's `rows` [n, D], packed before this returns; role: names the result's buffer."""
        packed = self._packed("packed", rows)
        self._begin("to_columns", rows.shape[1])
        columns = self._columns(role, rows)
        for peer in self._peers():
            self._receiving += self.transport.receive(columns[self._rows_of(peer)], self.first + peer, self._tag)
        with self.transport.counters.timing("pack_seconds"):
            for peer in range(self.num_columns):
                place = self._place(peer, rows)
                into = columns[self._rows_of(peer)] if peer == self.me else packed[peer]
                _copy(into[:, : place.stop - place.start], rows[:, place])
        for peer in self._peers():
            self._sending["to_columns"] += self.transport.send(packed[peer], self.first + peer, self._tag)

    def finish_columns(self, like: np.ndarray, role: str = "columns") -> np.ndarray:
        """Wait for [O, w], columns of all rows; valid until the next call for rows `like` these and this role."""
        self.transport.wait(self._receiving, self._tag)
        return self._columns(role, like)

    def empty_columns(self, like: np.ndarray) -> np.ndarray:
        """Where columns [O, w] are made that `start_rows` sends, for rows `like` [n, D]."""
        self.transport.wait(self._sending["to_rows"])
        return self._columns("made", like)

    def start_rows(self, like: np.ndarray) -> None:
        """Start sending what was written to `empty_columns`."""
        columns, arriving = self._columns("made", like), self._packed("arriving", like)
        self._begin("to_rows", like.shape[1])
        for peer in self._peers():
            self._receiving += self.transport.receive(arriving[peer], self.first + peer, self._tag)
        for peer in self._peers():
            rows = columns[self._rows_of(peer)]
            self._sending["to_rows"] += self.transport.send(rows, self.first + peer, self._tag)

    def finish_rows(self, out: np.ndarray) -> None:
        """Wait for this rank's rows and write them to `out` [n, D]."""
        self.transport.wait(self._receiving, self._tag)
        columns, arriving = self._columns("made", out), self._packed("arriving", out)
        with self.transport.counters.timing("pack_seconds"):
            for peer in range(self.num_columns):
                place = self._place(peer, out)
                piece = columns[self._rows_of(peer)] if peer == self.me else arriving[peer]
                _copy(out[:, place], piece[:, : place.stop - place.start])

    def drain(self) -> None:
        for requests in self._sending.values():
            self.transport.wait(requests)

    def buffer_bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers.values())

    def _peers(self) -> Iterator[int]:
        """The others of the group, each rank beginning with another: no two send to the same one first."""
        return ((self.me + step) % self.num_columns for step in range(1, self.num_columns))

    def _begin(self, operation: str, width: int) -> None:
        self.transport.wait(self._sending[operation])
        self._sending[operation], self._receiving = [], []
        self._tag = self.transport.begin(operation, width)

    def _rows_of(self, peer: int) -> slice:
        return slice(int(self.bounds[peer]), int(self.bounds[peer + 1]))

    def _place(self, peer: int, like: np.ndarray) -> slice:
        width, each = like.shape[1], -(-like.shape[1] // self.num_columns)
        return slice(min(peer * each, width), min((peer + 1) * each, width))

    def _columns(self, role: str, like: np.ndarray) -> np.ndarray:
        """[O, w]."""
        return self._buffer(role, like, (int(self.bounds[-1]),))

    def _packed(self, role: str, like: np.ndarray) -> np.ndarray:
        """[t, n, w]."""
        return self._buffer(role, like, (self.num_columns, self.own_rows.stop - self.own_rows.start))

    def _buffer(self, role: str, like: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        key = role, like.shape[1], like.dtype
        if key not in self._buffers:
            self._buffers[key] = page_aligned_zeros((*shape, -(-like.shape[1] // self.num_columns)), like.dtype)
        return self._buffers[key]


def _copy(to: np.ndarray, rows: np.ndarray) -> None:
    """to = rows, by torch's threads."""
    torch.from_numpy(to).copy_(torch.from_numpy(rows))
