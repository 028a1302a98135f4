"""Fused attention against torch's autograd over explicit arcs."""

import numpy as np
import pytest

from distgnn.kernels import (
    attention,
    attention_backward,
    attention_partial,
    csr_from_edges,
    finish_attention,
    merge_attention,
)
from distgnn.kernels.check import reference
from distgnn.kernels.runtime.tiles import registers

from ..graphs import attention_by_torch, awkward, both_passes, close, rows_of

# Rows wider than the registers: some heads at a time; and where none fits, pass by pass. Each shape is compiled anew.
BEYOND = (registers()[1] + 1) * registers()[0] // 4 - 3  # columns of float32: one vector more than a pass holds
WIDE = [(12, 47, np.float32), (2, BEYOND, np.float32)]


def _inputs(name, heads, width, dtype=np.float32):
    indptr, indices, sources = awkward(name)
    rows = len(indptr) - 1
    feats, grad = rows_of(sources, heads * width, dtype), rows_of(rows, heads * width, dtype, 1)
    scores = rows_of(sources, heads, dtype, 2), rows_of(rows, heads, dtype, 3)
    return indptr, indices, feats.reshape(sources, heads, width), *scores, grad.reshape(rows, heads, width)


@pytest.mark.parametrize(
    "name, heads, width, dtype",
    [("random", 4, 9, np.float32), ("isolated", 3, 5, np.float64), *(("hub", *shape) for shape in WIDE)],
)
def test_against_torch(name, heads, width, dtype, num_threads):
    inputs = _inputs(name, heads, width, dtype)
    out, arguments = both_passes(*inputs)
    for a, b in zip((out, *attention_backward(*arguments)), attention_by_torch(*inputs), strict=True):
        close(a, b)


@pytest.mark.parametrize("heads, width, dtype", WIDE)
def test_a_gradient_over_the_rows_and_one_for_all_heads(heads, width, dtype, num_threads):
    """Also where several passes share columns. Of a mean over heads one row stands for as many equal ones."""
    *inputs, grad = _inputs("hub", heads, width, dtype)
    _, shared = both_passes(*inputs, grad[:, :1].copy())
    arguments = *shared[:5], np.repeat(shared[5], heads, axis=1), *shared[6:]
    expected = attention_backward(*arguments)
    one_row = attention_backward(*shared)
    over = attention_backward(*arguments, grad_feats=inputs[2])
    assert over[0] is inputs[2]
    for a, b, c in zip(expected, one_row, over, strict=True):
        np.testing.assert_array_equal(b, a)
        np.testing.assert_array_equal(c, a)


def test_gradients_of_scores_side_by_side(num_threads):
    """In one array where sources and targets are as many: the same bits."""
    indptr, indices, feats, source, target, grad = _inputs("hub", 3, 5, np.float64)
    rows = min(len(feats), len(grad))
    indptr, indices, _ = csr_from_edges(indices % rows, np.repeat(np.arange(len(grad)), np.diff(indptr)) % rows, rows)
    _, arguments = both_passes(indptr, indices, *(array[:rows].copy() for array in (feats, source, target, grad)))
    expected, beside = attention_backward(*arguments), np.full((rows, 6), np.nan)
    for a, b in zip(attention_backward(*arguments, grad_scores=beside), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(beside, np.concatenate(expected[1:], axis=1))


def test_partial_results_merge():
    """Arcs dealt to two ranks, the second's partial rows merged into the first's: as one rank."""
    generator = np.random.default_rng(3)
    src, dst = (generator.integers(0, count, 400, np.int32) for count in (50, 30))
    half = generator.random(400) < 0.5
    feats, source, target = rows_of(50, 36).reshape(50, 4, 9), rows_of(50, 4) * 5, rows_of(31, 4, seed=1)
    states = []
    for chosen in (half, ~half, half | ~half):
        indptr, indices, _ = csr_from_edges(src[chosen], dst[chosen], 31)
        states.append(attention_partial(indptr, indices, feats, source, target))
    out, top, sums = merge_attention(*states[0], np.arange(31), *states[1])
    np.testing.assert_array_equal(top, states[2][1])
    close(sums, states[2][2])
    close(finish_attention(out, sums), finish_attention(states[2][0], states[2][2]))


def test_bfloat16_rows():
    indptr, indices, feats, source, target, _ = _inputs("random", 4, 9)
    bits = reference.to_bfloat16(feats)
    expected = attention(indptr, indices, reference.widened(bits), source, target)[0]
    np.testing.assert_array_equal(attention(indptr, indices, bits, source, target)[0], expected)


def test_bad_arguments():
    indptr, indices, feats, source, target, _ = _inputs("random", 4, 8)
    for bad in ((feats[:, 0], source, target), (feats, source[:, :2], target), (feats, source, target[1:])):
        with pytest.raises(ValueError):
            attention(indptr, indices, *bad)
    with pytest.raises(ValueError, match="slope"):
        attention(indptr, indices, feats, source, target, slope=2)
