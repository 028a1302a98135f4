"""Rows transposed times rows, where one of the two has few columns."""

import numpy as np
import pytest

from distgnn.kernels import narrow_product
from distgnn.kernels.check import reference

from ..graphs import close, rows_of


@pytest.mark.parametrize("num", [0, 1, 3, 259, 700, 9001])
@pytest.mark.parametrize("depth, width, dtype", [(8, 256, np.float32), (3, 37, np.float64), (1, 5, np.float32)])
def test_narrow_product_against_numpy(num, depth, width, dtype, num_threads):
    rows, grads = rows_of(num, depth, dtype), rows_of(num, width, dtype, 1)
    close(narrow_product(rows, grads), rows.T.astype(np.float64) @ grads)


def test_narrow_product_of_bfloat16_is_summed_in_float32():
    rows, bits = rows_of(500, 3, np.float32), reference.to_bfloat16(rows_of(500, 37, np.float32, 1))
    close(narrow_product(rows, bits), rows.T.astype(np.float64) @ reference.widened(bits))
    with pytest.raises(ValueError, match="do not fit"):
        narrow_product(rows, bits[:499])
