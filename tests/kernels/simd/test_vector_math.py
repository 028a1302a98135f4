"""Functions of registers against numpy: how near they come, and what they give at the ends."""

import numpy as np
import pytest
from numba import njit

from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vector_math import exp, reciprocal
from distgnn.kernels.simd.vectors import load, store

EIGHT = Tile(8, (0,), (0,))


@njit
def of_rows(rows, powers, inverses):
    for first in range(0, rows.size, 8):
        row = load(EIGHT, rows, first)
        store(EIGHT, powers, first, exp(row))
        store(EIGHT, inverses, first, reciprocal(row))


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, -87), (np.float64, -708)])
def test_powers_and_inverses(dtype, least):
    """Of numbers up to 0, as in a softmax: within 2 units in the last place; below the smallest normal number 0."""
    rows = np.linspace(2 * least, 0, 8192).astype(dtype).reshape(-1, 8)
    powers, inverses = np.empty_like(rows), np.empty_like(rows)
    of_rows(rows, powers, inverses)
    expected = np.exp(rows.astype(np.longdouble)) * (rows >= least)
    assert (np.abs(powers - expected) <= 2 * np.spacing(expected.astype(dtype))).all()
    assert inverses[-1, -1] == 0 and np.array_equal(inverses[:-1], 1 / rows[:-1])
