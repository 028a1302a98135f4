"""Dot products of equal rows, head by head, against numpy."""

import numpy as np
import pytest

from distgnn.kernels import head_dots, head_outer, head_scores
from distgnn.kernels.check import reference

from ..graphs import close, rows_of


@pytest.mark.parametrize(
    ("rows", "heads", "width", "dtype"),
    [(300, 4, 9, np.float32), (7, 3, 5, np.float64), (50, 1, 37, np.float32), (0, 4, 9, np.float32)],
)
def test_against_numpy(rows, heads, width, dtype, num_threads):
    left, right = (rows_of(rows, heads * width, dtype, seed) for seed in (0, 1))
    close(head_dots(left, right, heads), (left * right).reshape(rows, heads, width).sum(axis=2))


def test_one_row_for_all():
    left, right = rows_of(30, 36, np.float32), rows_of(1, 36, np.float32, 1)
    close(head_dots(left, right, 4), (left * right).reshape(30, 4, 9).sum(axis=2))


@pytest.mark.parametrize("heads, width, dtype", [(4, 9, np.float32), (2, 132, np.float64)])
def test_outer_against_numpy(heads, width, dtype, num_threads):
    feats, rows = (rows_of(n, heads * width, dtype, seed) for seed, n in enumerate((600, 2)))
    factors = rows_of(2 * 600, heads, dtype, 3).reshape(2, 600, heads)
    wide = np.repeat(factors, width, axis=2)
    expected = feats + (wide * rows[:, None]).sum(axis=0)
    assert head_outer(feats, rows, factors) is feats
    close(feats, expected)


def test_bfloat16_rows_are_summed_in_float32():
    left, right = (rows_of(40, 36, np.float32, seed) for seed in (0, 1))
    bits = reference.to_bfloat16(left)
    expected = (reference.widened(bits) * right).reshape(40, 4, 9).sum(axis=2)
    close(head_dots(bits, right, 4), expected)


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="rows of 3 heads"):
        head_dots(np.zeros((2, 8)), np.zeros((2, 8)), 3)
    with pytest.raises(ValueError, match="summed alike"):
        head_dots(np.zeros((2, 8)), np.zeros((2, 8), np.float32), 2)


@pytest.mark.parametrize("heads, width, dtype", [(4, 9, np.float32), (7, 41, np.float32)])
def test_rows_for_all_heads(heads, width, dtype, num_threads):
    left, right = rows_of(300, heads * width, dtype), rows_of(300, width, dtype, 1)
    close(head_dots(left, right, heads), (left.reshape(300, heads, width) * right[:, None]).sum(axis=2))


@pytest.mark.parametrize("heads, width, dtype", [(4, 9, np.float32), (2, 300, np.float32)])
def test_scores_of_several_rows(heads, width, dtype, num_threads):
    feats, rows = rows_of(300, heads * width, dtype), rows_of(2, heads * width, dtype, 1)
    got = head_scores(feats, rows, heads)
    for row, scores in zip(rows, got, strict=True):
        close(scores, (feats * row).reshape(300, heads, width).sum(axis=2))
