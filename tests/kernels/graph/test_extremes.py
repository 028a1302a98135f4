"""Maxima and minima against arc-by-arc numpy, and which arc gives them."""

import numpy as np
import pytest

from distgnn.kernels import spmm
from distgnn.kernels.check import reference

from ..graphs import NAMES, awkward, close, rows_of


@pytest.mark.parametrize("reduce", ["max", "min"])
@pytest.mark.parametrize("name", NAMES)
def test_graphs(name, reduce, num_threads):
    """Also of a slice of the rows, and of rows without arcs for results that are merged later."""
    indptr, indices, sources = awkward(name)
    feats, empty = rows_of(sources, 37), np.diff(indptr) == 0
    (found, winners), expected = (one(indptr, indices, feats, reduce) for one in (spmm, reference.spmm))
    close(found, expected[0])
    np.testing.assert_array_equal(winners, expected[1])
    np.testing.assert_array_equal(
        spmm(indptr[len(indptr) // 2 :], indices, feats, reduce)[1], winners[len(indptr) // 2 :]
    )
    assert spmm(indptr, indices, feats[:, :0].copy(), reduce)[0].shape == (len(indptr) - 1, 0)
    partial, _ = spmm(indptr, indices, feats, reduce, keep_inf=True)
    assert np.isinf(partial[empty]).all() and (partial[empty] > 0).all() == (reduce == "min" or not empty.any())
    np.testing.assert_array_equal(partial[~empty], found[~empty])


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_extremes_prefer_the_first_position(reduce):
    indptr, indices = np.array([0, 4]), np.zeros(4, np.int32)
    assert (spmm(indptr, indices, np.ones((1, 37), np.float32), reduce)[1] == 0).all()
