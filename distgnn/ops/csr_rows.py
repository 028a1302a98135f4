"""Some rows at a time: ranges of rows, and some rows of a CSR matrix, copied where they stand side by side."""

import numpy as np

FEWEST = 4  # entries, on average, of a range that is worth a copy of its own


def blocks(num_rows: int, size: int) -> list[slice]:
    """Ranges of at most `size` rows, one after the other."""
    return [slice(first, min(first + size, num_rows)) for first in range(0, num_rows, size)]


class Entries:
    """The entries of some rows in a matrix of which only `indptr` is known.

    Args: indptr: of all rows; rows: places, ascending or not.
    Attributes: indptr: of these rows alone, int64 [rows + 1].
    """

    def __init__(self, indptr: np.ndarray, rows: np.ndarray):
        self.indptr: np.ndarray = np.zeros(len(rows) + 1, np.int64)
        self._places: np.ndarray | None = None
        if not len(rows):
            self._first, self._ranges = np.zeros(0, np.int64), []
            return
        first = indptr[rows]
        np.cumsum(indptr[rows + 1] - first, out=self.indptr[1:])
        self._first = first
        starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        ends = np.append(starts[1:], len(rows)) - 1
        self._ranges = list(zip(first[starts].tolist(), indptr[rows[ends] + 1].tolist(), strict=True))

    def places(self) -> np.ndarray:
        """Where the entries stand in the whole matrix, int64."""
        if self._places is None:
            # The k-th entry of row i stands at first[i] + k in the matrix and at indptr[i] + k here.
            shift = np.repeat(self._first - self.indptr[:-1], np.diff(self.indptr))
            self._places = shift + np.arange(self.indptr[-1])
        return self._places

    def of(self, values: np.ndarray) -> np.ndarray:
        """These entries of an array [nnz] of the whole matrix, in a copy."""
        if not self._ranges:
            return values[:0]
        if len(self._ranges) * FEWEST > self.indptr[-1]:
            return values[self.places()]
        return np.concatenate([values[first:last] for first, last in self._ranges])
