"""Fused attention against torch's autograd over explicit arcs."""

import numpy as np
import pytest
import torch

from distgnn.kernels import (
    attention,
    attention_backward,
    attention_partial,
    csr_from_edges,
    finish_attention,
    merge_attention,
    transpose_csr,
)
from distgnn.kernels.attention.attention_kernels import CHUNK, WINDOW
from distgnn.kernels.check import reference  # fmt: skip
from distgnn.kernels.runtime.tiles import registers

from ..graphs import awkward, close, rows_of

# Rows wider than the registers: some heads at a time; and where none fits, pass by pass. Each shape is compiled anew.
BEYOND = (registers()[1] + 1) * registers()[0] // 4 - 3  # columns of float32: one vector more than a pass holds
WIDE = [(12, 47, np.float32), (2, BEYOND, np.float32)]


def _torch(indptr, indices, feats, source, target, grad):
    """Arc by arc in float64: (out, gradients of feats, source scores, target scores)."""
    leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (feats, source, target)]
    rows = torch.repeat_interleave(torch.arange(len(indptr) - 1), torch.from_numpy(np.diff(indptr)))
    cols = torch.from_numpy(indices.astype(np.int64))
    power = torch.nn.functional.leaky_relu(leaves[1][cols] + leaves[2][rows], 0.2).exp()
    sums = torch.zeros(len(indptr) - 1, source.shape[1], dtype=torch.float64).index_add(0, rows, power)
    messages = leaves[0][cols] * (power / sums[rows])[..., None]
    out = torch.zeros(len(indptr) - 1, *feats.shape[1:], dtype=torch.float64).index_add(0, rows, messages)
    out.backward(torch.from_numpy(grad.astype(np.float64)))
    return [out.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)]


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
    indptr, indices, feats, source, target, grad = _inputs(name, heads, width, dtype)
    expected = _torch(indptr, indices, feats, source, target, grad)
    out, top, sums = attention(indptr, indices, feats, source, target)
    close(out, expected[0])
    dots = (grad * out).sum(axis=2)
    backward = transpose_csr(indptr, indices, len(feats))[:2]
    got = attention_backward(*backward, feats, source, target, grad, top, sums, dots)
    for a, b in zip(got, expected[1:], strict=True):
        close(a, b)


@pytest.mark.parametrize("heads, width, dtype", WIDE)
def test_a_gradient_may_be_written_over_the_rows(heads, width, dtype, num_threads):
    """Also where several passes share columns."""
    indptr, indices, feats, source, target, grad = _inputs("hub", heads, width, dtype)
    out, top, sums = attention(indptr, indices, feats, source, target)
    backward = transpose_csr(indptr, indices, len(feats))[:2]
    state = grad, top, sums, (grad * out).sum(axis=2)
    expected = attention_backward(*backward, feats, source, target, *state)
    got = attention_backward(*backward, feats, source, target, *state, grad_feats=feats)
    assert got[0] is feats
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("heads, width, dtype", WIDE)
def test_a_gradient_for_all_heads(heads, width, dtype, num_threads):
    """Of a mean over heads: one row in place of as many equal ones."""
    indptr, indices, feats, source, target, grad = _inputs("hub", heads, width, dtype)
    grad = grad[:, :1].copy()
    out, top, sums = attention(indptr, indices, feats, source, target)
    backward = transpose_csr(indptr, indices, len(feats))[:2]
    state = top, sums, (grad * out).sum(axis=2)
    expected = attention_backward(*backward, feats, source, target, np.repeat(grad, heads, axis=1), *state)
    got = attention_backward(*backward, feats, source, target, grad, *state)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("heads, width, dtype", [(3, 5, np.float64)])
def test_gradients_of_scores_side_by_side(heads, width, dtype, num_threads):
    """In one array where sources and targets are as many: the same bits."""
    indptr, indices, feats, source, target, grad = _inputs("hub", heads, width, dtype)
    rows = min(len(feats), len(grad))
    indptr, indices, _ = csr_from_edges(indices % rows, np.repeat(np.arange(len(grad)), np.diff(indptr)) % rows, rows)
    feats, source, target, grad = (array[:rows].copy() for array in (feats, source, target, grad))
    out, top, sums = attention(indptr, indices, feats, source, target)
    backward = transpose_csr(indptr, indices, rows)[:2]
    arguments = *backward, feats, source, target, grad, top, sums, (grad * out).sum(axis=2)
    expected, beside = attention_backward(*arguments), np.full((rows, 2 * heads), np.nan, dtype)
    got = attention_backward(*arguments, grad_scores=beside)
    for a, b in zip(got, expected, strict=True):
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


def _uneven(heads):
    """Ends of arcs by row: rows with more arcs than a window of weights has, with few, with none; and their number."""
    window = max(CHUNK, WINDOW // heads)
    degrees = np.array([0, 3, 0, 2 * window + 5, window, 1, 0, 0, window - 1, *[7] * window, CHUNK + 1, 0])
    others = np.random.default_rng(0).integers(0, 50, degrees.sum(), np.int32)
    return np.repeat(np.arange(len(degrees), dtype=np.int32), degrees), others, len(degrees)


@pytest.mark.parametrize("heads, width", [(1, 8), (20, 32)])
def test_forward_over_windows_of_weights(heads, width, num_threads):
    """Weights are made for many arcs at a time: of targets with more than a window has, with few, with none; of rows
    that registers hold some heads of, too."""
    dst, src, rows = _uneven(heads)
    indptr, indices, _ = csr_from_edges(src, dst, rows)
    feats = rows_of(50, heads * width, np.float64).reshape(50, heads, width)
    source, target = rows_of(50, heads, np.float64, 2), rows_of(rows, heads, np.float64, 3)
    out, top, sums = attention(indptr, indices, feats, source, target)
    close(out, _torch(indptr, indices, feats, source, target, np.zeros_like(out))[0])
    scores = source[indices] + target[np.repeat(np.arange(rows), np.diff(indptr))]
    scores = np.where(scores > 0, scores, 0.2 * scores)
    for i, of_row in enumerate(np.split(scores, indptr[1:-1])):
        close(top[i], of_row.max(axis=0, initial=-np.inf))
        close(sums[i], np.exp(of_row - top[i]).sum(axis=0))


@pytest.mark.parametrize("heads, width", [(1, 8), (20, 32)])
def test_backward_over_windows_of_weights(heads, width, num_threads):
    """The same by source."""
    src, targets, num = _uneven(heads)
    indptr, indices, _ = csr_from_edges(src, targets, 50)
    feats = rows_of(num, heads * width, np.float64).reshape(-1, heads, width)
    grad = rows_of(50, heads * width, np.float64, 1).reshape(50, heads, width)
    source, target = rows_of(num, heads, np.float64, 2), rows_of(50, heads, np.float64, 3)
    expected = _torch(indptr, indices, feats, source, target, grad)
    out, top, sums = attention(indptr, indices, feats, source, target)
    backward = transpose_csr(indptr, indices, len(feats))[:2]
    got = attention_backward(*backward, feats, source, target, grad, top, sums, (grad * out).sum(axis=2))
    for a, b in zip(got, expected[1:], strict=True):
        close(a, b)
