"""Some rows of a CSR matrix, of which only the pointers are known, are those that scipy takes."""

import numpy as np
import pytest
from scipy import sparse

from distgnn.ops.csr_rows import Entries


@pytest.mark.parametrize("rows", [[], [4], range(3, 20), [7, 2, 2, 31, 30], range(0, 40, 2)], ids=str)
def test_entries_are_those_of_scipy(rows):
    """Ranges are copied, scattered rows are looked up."""
    matrix, rows = sparse.random(40, 30, 0.3, "csr", random_state=0), np.array(rows, np.int64)
    entries, expected = Entries(matrix.indptr, rows), matrix[rows]
    np.testing.assert_array_equal(entries.indptr, expected.indptr)
    np.testing.assert_array_equal(entries.of(matrix.indices), expected.indices)
    np.testing.assert_array_equal(entries.of(matrix.data), expected.data)
    np.testing.assert_array_equal(matrix.data[entries.places()], expected.data)
