"""Groups of ranks that share a part: each has a range of its owned rows, and a range of columns for aggregation.

Legend: P parts, t ranks of a group, O owned rows of a part, n a rank's (about O / t), D width,
w = ceil(D / t) columns of a rank (the last ones have zeros behind theirs).

    rank p t + c    part p, rows c of t, columns c of t

    rows [n, D] of every rank --- to columns ---> columns [O, w]      each rank gets its columns of all rows
    columns [O, w] ------------- to rows -------> rows [n, D]         the transpose, and the way back

Rows [n, D] are rows [n t, w], of which every t-th goes to a rank: a broadcast, and on the way back a reduce.

Source: aggregation by columns between two all-to-alls is NeutronTP's (Ai et al., PVLDB 18(2), 2024), over all ranks and
without a cut; vertices and columns are split at once in CAGNET's 2-D and 3-D forms (Tripathy et al., SC'20).
"""

import numpy as np

from distgnn.comm import Exchange, Transport
from distgnn.comm.page_memory import MessageMemory
from distgnn.comm.plans import indptr_of
from distgnn.partition import ExchangePlan


def row_bounds(num_rows: int, num_columns: int) -> np.ndarray:
    """Where each rank's range of a part's owned rows begins and ends, int64 [t + 1]."""
    return num_rows * np.arange(num_columns + 1, dtype=np.int64) // num_columns


class ColumnGroup:
    """Moves rows within one group.

    Collective: every start and finish, over all groups in the same order.

    Args: num_rows: O.

    Notes: one call of each kind may be in flight.
    """

    def __init__(self, transport: Transport, num_columns: int, num_rows: int):
        first, self.num_columns = transport.rank // num_columns * num_columns, num_columns
        bounds, me = row_bounds(num_rows, num_columns), transport.rank - first
        self.own_rows: slice = slice(int(bounds[me]), int(bounds[me + 1]))
        self._num = self.own_rows.stop - self.own_rows.start
        sent, arriving = np.zeros((2, transport.num_ranks), np.int64)
        sent[first : first + num_columns], arriving[first : first + num_columns] = self._num, np.diff(bounds)
        rows = np.arange(self._num * num_columns, dtype=np.int32).reshape(self._num, num_columns).T.ravel()
        half = indptr_of(sent), rows, indptr_of(arriving)
        plan = ExchangePlan(transport.num_ranks, transport.rank, len(rows), *half, *half)
        self.exchange: Exchange = Exchange(plan, transport, MessageMemory())

    def start_columns(self, rows: np.ndarray) -> None:
        """Start sending this rank's `rows` [n, D], packed before this returns."""
        pieces = self._zeros(rows)
        pieces[:, : rows.shape[1]] = rows
        self.exchange.start_broadcast(self._cut(pieces))

    def finish_columns(self) -> np.ndarray:
        """Wait for [O, w], columns of all rows; valid until the next `start_columns`."""
        return self.exchange.finish_broadcast()

    def empty_columns(self, like: np.ndarray) -> np.ndarray:
        """Where columns [O, w] are made, for rows `like` [n, D]; `start_rows` sends them."""
        return self.exchange.target_rows(self._cut(self._zeros(like)))

    def start_rows(self, columns: np.ndarray) -> None:
        self.exchange.start_reduce(columns)

    def finish_rows(self, out: np.ndarray) -> None:
        """Wait for this rank's rows and write them to `out` [n, D]."""
        pieces = self._zeros(out)
        self.exchange.finish_reduce(self._cut(pieces))
        out[:] = pieces[:, : out.shape[1]]

    def _zeros(self, like: np.ndarray) -> np.ndarray:
        """[n, t w]."""
        return np.zeros((self._num, -(-like.shape[1] // self.num_columns) * self.num_columns), like.dtype)

    def _cut(self, pieces: np.ndarray) -> np.ndarray:
        """[n, t w] as [n t, w]."""
        return pieces.reshape(self._num * self.num_columns, pieces.shape[1] // self.num_columns)
