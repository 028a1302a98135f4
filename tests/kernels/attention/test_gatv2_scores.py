"""Scores of arcs from both ends against torch's autograd over explicit arcs."""

import numpy as np
import pytest
import torch

from distgnn.kernels import pair_scores, pair_scores_backward, transpose_csr

from ..graphs import awkward, close, rows_of


@pytest.mark.parametrize("name", ["hub", "isolated"])
def test_against_torch(name, num_threads):
    (indptr, indices, count), heads, width, dtype = awkward(name), 4, 9, np.float64
    rows, columns = len(indptr) - 1, heads * width
    sources, targets, attn = (rows_of(n, columns, dtype, seed) for seed, n in enumerate((count, rows, 1)))
    arcs = np.random.default_rng(0).permutation(len(indices))
    grad = rows_of(len(indices), heads, dtype, 3)
    leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (sources, targets, attn)]
    ends = torch.from_numpy(indices.astype(np.int64)), torch.from_numpy(np.repeat(np.arange(rows), np.diff(indptr)))
    pairs = torch.nn.functional.leaky_relu(leaves[0][ends[0]] + leaves[1][ends[1]], 0.2) * leaves[2]
    expected = pairs.view(-1, heads, width).sum(2)
    (expected * torch.from_numpy(grad[arcs].astype(np.float64))).sum().backward()
    got = pair_scores(indptr, indices, arcs, sources, targets, attn, heads)
    close(got[arcs], expected.detach().numpy())
    to_targets, to_attn = pair_scores_backward(indptr, indices, arcs, sources, targets, attn, grad)
    indptr_t, indices_t, positions = transpose_csr(indptr, indices, count)
    to_sources, again = pair_scores_backward(indptr_t, indices_t, arcs[positions], targets, sources, attn, grad)
    for mine, leaf in zip((to_sources, to_targets, to_attn, again), (*leaves, leaves[2]), strict=True):
        close(mine, leaf.grad.numpy())


def test_rows_that_do_not_fit_are_refused():
    rows = np.zeros((2, 6))
    with pytest.raises(ValueError, match="do not fit 4 heads"):
        pair_scores([0, 1, 1], [0], [0], rows, rows, rows[:1], 4)
    with pytest.raises(ValueError, match="one dtype"):
        pair_scores([0, 1, 1], [0], [0], rows, rows.astype(np.float32), rows[:1], 3)
