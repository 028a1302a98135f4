"""Cross entropy in one pass over the rows, against torch's in float64."""

import numpy as np
import pytest
import torch

from distgnn.kernels import cross_entropy, cross_entropy_backward
from distgnn.kernels.rowwise.cross_entropy import BLOCK_ROWS

from ..graphs import close, rows_of


def _inputs(num, classes, dtype):
    generator = np.random.default_rng(num)
    logits, rows = rows_of(num, classes, dtype) * 3, generator.random(num) < 0.6
    labels = generator.integers(0, classes, num)
    labels[~rows] = -1  # of rows that do not count there may be no label
    return logits, labels, rows


def _torch(logits, labels, rows, factor, smoothing=0.0):
    leaf = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    options = {"reduction": "sum", "label_smoothing": smoothing}
    loss = torch.nn.functional.cross_entropy(leaf[rows], torch.from_numpy(labels[rows]), **options)
    (loss * factor).backward()
    return loss.item(), leaf.grad.numpy()


@pytest.mark.parametrize(("classes", "smoothing"), [(3, 1.0), (37, 0.0), (37, 0.1), (349, 0.1)])
def test_against_torch(classes, smoothing, num_threads):
    dtype = np.float64
    logits, labels, rows = _inputs(2 * BLOCK_ROWS + 3, classes, dtype)
    expected, gradient = _torch(logits, labels, rows, 0.3, smoothing)
    loss, state = cross_entropy(logits, labels, rows, smoothing)
    assert loss == pytest.approx(expected, rel=1e-13)
    close(cross_entropy_backward(logits, labels, rows, state, 0.3, smoothing=smoothing), gradient)


@pytest.mark.parametrize("shift", [-3e4, 300, 3e4])
def test_far_from_zero(shift):
    """The largest logit is taken off first: no exponential overflows, and not all of them vanish."""
    logits, labels, rows = _inputs(50, 37, np.float64)
    expected, gradient = _torch(logits, labels, rows, 1, 0.2)
    loss, state = cross_entropy(logits + shift, labels, rows, 0.2)
    assert loss == pytest.approx(expected, rel=1e-8)
    found = cross_entropy_backward(logits + shift, labels, rows, state, 1, smoothing=0.2)
    np.testing.assert_allclose(found, gradient, atol=1e-9)


def test_a_class_that_is_ruled_out_costs_nothing_without_smoothing():
    logits, labels, rows = _inputs(20, 37, np.float32)
    logits[np.arange(20), (labels + 1) % 37] = -np.inf
    assert np.isfinite(cross_entropy(logits, labels, rows)[0])
    assert cross_entropy(logits, labels, rows, 0.1)[0] == np.inf


@pytest.mark.parametrize("classes", [3, 37])
def test_logits_far_apart(classes):
    """The highest logit may stand in any column."""
    logits = np.zeros((classes, classes))
    np.fill_diagonal(logits, 2000)
    labels, rows = np.zeros(classes, np.int64), np.ones(classes, bool)
    loss, state = cross_entropy(logits, labels, rows)
    assert loss == 2000 * (classes - 1)
    expected = np.eye(classes) - np.eye(classes)[labels]
    np.testing.assert_array_equal(cross_entropy_backward(logits, labels, rows, state, 1), expected)


def test_no_rows():
    for num in (0, 5):
        logits, rows = rows_of(num, 37, np.float32), np.zeros(num, bool)
        loss, state = cross_entropy(logits, np.full(num, -1), rows)
        assert loss == 0
        assert not cross_entropy_backward(logits, np.full(num, -1), rows, state, 1.0).any()


def test_a_nan_stays_one():
    logits, labels, rows = _inputs(20, 37, np.float32)
    logits[np.flatnonzero(rows)[0], 36] = np.nan
    assert np.isnan(cross_entropy(logits, labels, rows)[0])


@pytest.mark.parametrize("label", [-1, 4])
def test_a_label_that_is_no_class_is_refused(label):
    with pytest.raises(ValueError, match="labels must be from 0 to 3"):
        cross_entropy(rows_of(3, 4, np.float32), np.array([0, label, 1]), np.ones(3, bool))
