"""Dense products against numpy."""

import numpy as np
import pytest

from distgnn.kernels import Tuning, inner_product, inner_products, narrow_product, narrow_products, product
from distgnn.kernels.check import reference
from distgnn.kernels.rowwise import matmul
from distgnn.kernels.runtime import arrays
from distgnn.kernels.runtime.arrays import empty_rows

from ..graphs import close, rows_of

SHAPES = [(0, 5, 8), (1, 7, 37), (203, 33, 100), (97, 6, 3)]


@pytest.mark.parametrize(("num", "depth", "width"), SHAPES)
def test_against_numpy(num, depth, width, num_threads):
    dtype = np.float32
    rows, more, grads = (rows_of(num, size, dtype, seed) for seed, size in enumerate((depth, 5, width)))
    weight, more_weight = (rows_of(size, width, dtype, 3 + size) for size in (depth, 5))
    both = rows.astype(np.float64) @ weight + more.astype(np.float64) @ more_weight
    close(product(rows, weight), rows.astype(np.float64) @ weight)
    close(product(rows, weight, more, more_weight), both)
    close(product(rows, weight, more, more_weight, out=grads.copy(), accumulate=True), grads + both)
    close(inner_product(rows, grads), rows.T.astype(np.float64) @ grads)


@pytest.mark.parametrize(("num", "depth", "width"), [(0, 5, 8), (203, 33, 37), (500, 3, 37)])
def test_bfloat16_is_multiplied_and_summed_in_float32(num, depth, width, num_threads):
    rows, more, grads = (reference.to_bfloat16(rows_of(num, size, seed=size)) for size in (depth, 5, width))
    weight, more_weight, out = rows_of(depth, width), rows_of(5, width, seed=1), rows_of(num, width, seed=2)
    given = reference.widened(rows), weight, reference.widened(more), more_weight
    np.testing.assert_array_equal(product(rows, weight, more, more_weight), reference.to_bfloat16(product(*given)))
    added = product(rows, weight, more, more_weight, out=out.copy(), accumulate=True)
    np.testing.assert_array_equal(added, product(*given, out=out.copy(), accumulate=True))
    np.testing.assert_array_equal(inner_product(rows, grads), inner_product(*map(reference.widened, (rows, grads))))


def test_over_what_it_is_made_of(num_threads):
    rows, more = (rows_of(200, 100, np.float32, seed) for seed in (0, 1))
    weight, more_weight = (rows_of(100, 100, np.float32, seed) for seed in (2, 3))
    expected = product(rows, weight, more, more_weight)
    assert product(rows, weight, more, more_weight, out=rows) is rows
    np.testing.assert_array_equal(rows, expected)


def test_results_written_past_the_caches_have_the_same_bits(num_threads, monkeypatch):
    width, dtype = 320, np.float32
    rows, weight, run = rows_of(203, width, dtype), rows_of(width, width, dtype, 1), matmul.run
    plain, asked = product(rows, weight), []
    monkeypatch.setattr(arrays, "held_tuning", lambda: Tuning(past_caches=0))
    monkeypatch.setattr(matmul, "run", lambda *given: (asked.append(given[-1]), run(*given)))
    unaligned = empty_rows((rows.size + 1,), dtype)[1:].reshape(rows.shape)
    for out, past in ((None, True), (unaligned, False), (rows, False)):
        asked.clear()
        np.testing.assert_array_equal(product(rows, weight, out=out), plain)
        assert asked[0] == past  # what comes after it is a check
    asked.clear()
    product(rows, weight, out=plain, accumulate=True)
    assert not asked[0]


def test_a_rows_bits_depend_on_that_row_only():
    rows, weight = rows_of(200, 40, np.float32), rows_of(40, 37, np.float32, 1)
    np.testing.assert_array_equal(product(rows, weight)[50:61], product(rows[50:61], weight))


def test_shapes_that_do_not_fit_are_refused():
    rows, weight = rows_of(4, 3, np.float32), rows_of(2, 5, np.float32)
    with pytest.raises(ValueError, match="do not fit"):
        product(rows, weight)
    with pytest.raises(ValueError, match="do not fit"):
        product(rows, weight[[0, 0, 1]].astype(np.float64))
    with pytest.raises(ValueError, match="do not fit"):
        inner_product(rows, weight)


@pytest.mark.parametrize(("depth", "width"), [(1, 37), (5, 8), (6, 37), (7, 37), (18, 8), (19, 37)])
def test_columns_that_are_no_sixes(depth, width):
    """Each column is summed once, in the same order whatever is beside it."""
    rows, grads = rows_of(700, depth, np.float32), rows_of(700, width, np.float32, 1)
    got = inner_product(rows, grads)
    close(got, rows.T.astype(np.float64) @ grads)
    if width > 16:  # a narrower one is turned where rows are wider
        assert np.array_equal(got[-1:], inner_product(np.ascontiguousarray(rows[:, -1:]), grads))


@pytest.mark.parametrize("columns", [3, 37])
def test_rows_that_are_made_piece_by_piece_have_the_same_bits(columns, num_threads):
    """12,293 rows: three pieces."""
    rows, grads = rows_of(12_293, 37), rows_of(12_293, columns, seed=1)
    pieces = []

    def make(first, stop):
        pieces.append((first, stop))
        return rows[first:stop].copy()

    first, second = inner_products(make, 37, [grads, 2 * grads])
    whole = narrow_product(grads, rows).T if columns == 3 else inner_product(rows, grads)
    np.testing.assert_array_equal(first, whole)
    np.testing.assert_array_equal(second, 2 * whole)
    if columns == 3:
        np.testing.assert_array_equal(narrow_products(make, 37, grads), whole)
    assert {first for first, _ in pieces} > {0}
