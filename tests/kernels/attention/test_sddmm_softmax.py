"""Values on arcs against arc-by-arc numpy."""

import numpy as np
import pytest

from distgnn.kernels import edge_softmax, edge_softmax_backward, sddmm, spmm
from distgnn.kernels.check import reference

from ..graphs import NAMES, awkward, close, rows_of


@pytest.mark.parametrize("name", NAMES)
def test_operations(name, num_threads):
    indptr, indices, sources = awkward(name)
    rows, targets = rows_of(sources, 37), rows_of(len(indptr) - 1, 37, seed=1)
    for op in ("dot", "add"):
        close(sddmm(indptr, indices, rows, targets, op), reference.sddmm(indptr, indices, rows, targets, op))


@pytest.mark.parametrize("name, heads", [("hub", ()), ("isolated", (4,)), ("no edges", (4,))])
def test_softmax_and_its_gradient(name, heads, num_threads):
    indptr, indices, _ = awkward(name)
    scores, grad = (rows_of(len(indices), 8, seed=s).ravel() for s in (1, 2))
    count = len(indices) * int(np.prod(heads))
    scores, grad = (a[:count].reshape(-1, *heads) * 9 if heads else a[:count] * 9 for a in (scores, grad))
    ids = np.random.default_rng(0).permutation(len(indices))
    out = edge_softmax(indptr, scores, edge_ids=ids)
    close(out, reference.edge_softmax(indptr, scores, edge_ids=ids))
    expected = reference.edge_softmax_backward(indptr, out, grad, edge_ids=ids)
    close(edge_softmax_backward(indptr, out, grad, edge_ids=ids), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_of_extreme_scores(dtype):
    """Sums to 1 from -1e4 to 1e4, and the exponential underlying it is right to 2 units in the last place."""
    scores = np.concatenate([np.linspace(-80, 0, 400), [-1e4, -90, -750]]).astype(dtype)
    out = edge_softmax(np.array([0, len(scores)]), scores)
    expected = np.exp(scores.astype(np.longdouble)) / np.exp(scores.astype(np.longdouble)).sum()
    small = np.finfo(dtype).tiny * 1e3
    np.testing.assert_allclose(out, expected.astype(dtype), rtol=8 * np.finfo(dtype).eps, atol=small)
    assert abs(edge_softmax(np.array([0, 2]), np.array([1e4, -1e4], dtype)) - [1, 0]).max() == 0


def test_edge_ids_say_where_to_write():
    indptr, indices, sources = awkward("random")
    rows, targets = rows_of(sources, 37), rows_of(len(indptr) - 1, 37, seed=1)
    ids = np.random.default_rng(0).permutation(len(indices))
    np.testing.assert_array_equal(
        sddmm(indptr, indices, rows, targets, edge_ids=ids)[ids], sddmm(indptr, indices, rows, targets)
    )


def test_dot_is_the_gradient_of_the_weights():
    """d/dw ⟨spmm(w), g⟩ = sddmm(feats, g): the sum is linear in w."""
    indptr, indices, sources = awkward("random")
    feats, g = rows_of(sources, 7, np.float64), rows_of(len(indptr) - 1, 7, np.float64, 1)
    weight = rows_of(len(indices), 1, np.float64, 2)[:, 0]
    value = np.vdot(spmm(indptr, indices, feats, edge_weight=weight), g)
    np.testing.assert_allclose(np.vdot(sddmm(indptr, indices, feats, g), weight), value, rtol=1e-11)


def test_bad_arguments():
    indptr, indices, sources = awkward("random")
    rows, targets = rows_of(sources, 4), rows_of(len(indptr) - 1, 4)
    for bad in ((rows.astype(np.float64), targets), (rows, targets[:-1]), (rows[:, :3], targets)):
        with pytest.raises(ValueError):
            sddmm(indptr, indices, *bad)
