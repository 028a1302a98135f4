"""Dot products on arcs: their law, and what is refused. Numbers: kernels/check."""

import numpy as np
import pytest

from distgnn.kernels import sddmm, spmm

from ..graphs import awkward, rows_of


def test_dot_is_the_gradient_of_the_weights():
    """d/dw ⟨spmm(w), g⟩ = sddmm(feats, g): the sum is linear in w."""
    indptr, indices, sources = awkward("random")
    feats, g = rows_of(sources, 37, np.float64), rows_of(len(indptr) - 1, 37, np.float64, 1)
    weight = rows_of(len(indices), 1, np.float64, 2)[:, 0]
    value = np.vdot(spmm(indptr, indices, feats, edge_weight=weight), g)
    np.testing.assert_allclose(np.vdot(sddmm(indptr, indices, feats, g), weight), value, rtol=1e-11)


def test_bad_arguments():
    indptr, indices, sources = awkward("random")
    rows, targets = rows_of(sources, 4), rows_of(len(indptr) - 1, 4)
    for bad in ((rows.astype(np.float64), targets), (rows, targets[:-1]), (rows[:, :3], targets)):
        with pytest.raises(ValueError):
            sddmm(indptr, indices, *bad)
