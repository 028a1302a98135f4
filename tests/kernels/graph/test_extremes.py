"""Maxima and minima over arcs: ties, and rows without arcs."""

import numpy as np

from distgnn.kernels import spmm

from ..graphs import awkward, rows_of


def test_extremes_prefer_the_smallest_edge_id():
    indptr, indices = np.array([0, 4]), np.zeros(4, np.int32)
    feats, ids = np.ones((1, 37), np.float32), np.array([7, 2, 9, 1])
    assert (spmm(indptr, indices, feats, "max")[1] == 0).all()
    assert (spmm(indptr, indices, feats, "min", edge_ids=ids)[1] == 3).all()


def test_extremes_of_empty_rows():
    indptr, indices, sources = awkward("isolated")
    out, winner = spmm(indptr, indices, rows_of(sources, 37), "max")
    empty = np.diff(indptr) == 0
    assert not out[empty].any() and (winner[empty] == -1).all()
    partial, _ = spmm(indptr, indices, rows_of(sources, 37), "min", keep_inf=True)
    assert np.isposinf(partial[empty]).all() and np.isfinite(partial[~empty]).all()
