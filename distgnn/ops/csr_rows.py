"""Some rows of a CSR matrix."""

import numpy as np


def rows_of_csr(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The indptr of these rows alone, int64 [rows + 1], and where their entries stand in the whole matrix, int64."""
    first = indptr[rows]
    of_rows = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(indptr[rows + 1] - first, out=of_rows[1:])
    # The k-th entry of row i stands at first[i] + k in the matrix and at of_rows[i] + k here.
    return of_rows, np.repeat(first - of_rows[:-1], np.diff(of_rows)) + np.arange(of_rows[-1])
