"""Products with a few columns against numpy."""

import numpy as np
import pytest

from distgnn.kernels import narrow_product

from ..graphs import close, rows_of


@pytest.mark.parametrize("num", [0, 1, 3, 259, 9001])
def test_narrow_product(num, num_threads):
    rows, grads = rows_of(num, 3, np.float64), rows_of(num, 37, np.float64, 1)
    close(narrow_product(rows, grads), rows.T @ grads)
    with pytest.raises(ValueError, match="do not fit"):
        narrow_product(rows, rows_of(num + 1, 37, np.float64))
