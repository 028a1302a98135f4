"""sddmm against arc-by-arc numpy."""

import numpy as np
import pytest

from distgnn.kernels import reference, sddmm, spmm

from .graphs import NAMES, awkward, close, rows_of


@pytest.mark.parametrize("name", NAMES)
def test_dot(name, num_threads):
    indptr, indices, sources = awkward(name)
    rows, targets = rows_of(sources, 35), rows_of(len(indptr) - 1, 35, seed=1)
    close(sddmm(indptr, indices, rows, targets), reference.sddmm(indptr, indices, rows, targets))


def test_edge_ids_say_where_to_write():
    indptr, indices, sources = awkward("random")
    rows, targets = rows_of(sources, 5), rows_of(len(indptr) - 1, 5, seed=1)
    ids = np.random.default_rng(0).permutation(len(indices))
    np.testing.assert_array_equal(
        sddmm(indptr, indices, rows, targets, edge_ids=ids)[ids], sddmm(indptr, indices, rows, targets)
    )


def test_dot_is_the_gradient_of_the_weights():
    """d/dw ⟨spmm(w), g⟩ = sddmm(feats, g): the sum is linear in w."""
    indptr, indices, sources = awkward("random")
    feats, g = rows_of(sources, 6, np.float64), rows_of(len(indptr) - 1, 6, np.float64, 1)
    weight = rows_of(len(indices), 1, np.float64, 2)[:, 0]
    value = np.vdot(spmm(indptr, indices, feats, edge_weight=weight), g)
    np.testing.assert_allclose(np.vdot(sddmm(indptr, indices, feats, g), weight), value, rtol=1e-11)


def test_bad_arguments():
    indptr, indices, sources = awkward("random")
    rows, targets = rows_of(sources, 4), rows_of(len(indptr) - 1, 4)
    for bad in ((rows.astype(np.float64), targets), (rows, targets[:-1]), (rows[:, :3], targets)):
        with pytest.raises(ValueError):
            sddmm(indptr, indices, *bad)
