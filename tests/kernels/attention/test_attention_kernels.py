"""Weights of attention are made for many arcs at a time: rows with more arcs than a window has, with few, with none."""

import numpy as np
import pytest

from distgnn.kernels import attention, attention_backward, csr_from_edges
from distgnn.kernels.attention.attention_kernels import CHUNK, WINDOW

from ..graphs import attention_by_torch, both_passes, close, rows_of


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
    close(out, attention_by_torch(indptr, indices, feats, source, target, np.zeros_like(out))[0])
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
    ends = [
        rows_of(count, heads * width, np.float64, seed).reshape(-1, heads, width)
        for seed, count in enumerate((num, 50))
    ]
    scores = rows_of(num, heads, np.float64, 2), rows_of(50, heads, np.float64, 3)
    inputs = indptr, indices, ends[0], *scores, ends[1]
    for a, b in zip(attention_backward(*both_passes(*inputs)[1]), attention_by_torch(*inputs)[1:], strict=True):
        close(a, b)
