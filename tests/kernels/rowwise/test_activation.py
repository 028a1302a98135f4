"""Fused bias, norm, activation and dropout against torch's autograd with the same mask."""

import numpy as np
import pytest
import torch

from distgnn.kernels import activate, activate_backward, dropout
from distgnn.kernels.check import reference

from ..graphs import close, rows_of

DRAW = {"seed": 5, "step": 1, "site": 0}


def _torch(feats, bias, norm, activation, p, ids, grad):
    """The composition in float64: (out, gradients of feats, bias, gamma, beta)."""
    leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (feats, bias, *(norm or ()))]
    row = leaves[0] + leaves[1]
    if norm:
        row = torch.nn.functional.layer_norm(row, row.shape[1:], leaves[2], leaves[3])
    row = torch.relu(row) if activation == "relu" else row
    out = row * torch.from_numpy(dropout(np.ones_like(feats, np.float64), ids, p, **DRAW))
    out.backward(torch.from_numpy(grad.astype(np.float64)))
    return [out.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)]


@pytest.mark.parametrize("normed", [False, True], ids=["plain", "norm"])
@pytest.mark.parametrize("activation", ["relu", "none"])
def test_against_torch(activation, normed, num_threads):
    width, dtype = 37, np.float64
    feats, grad, ids = rows_of(300, width, dtype), rows_of(300, width, dtype, 1), np.arange(300) * 7
    bias, gamma, beta = rows_of(3, width, dtype, 2)
    norm = (gamma, beta) if normed else None
    options = {"activation": activation, "p": 0.25, "row_ids": ids, **DRAW}
    out, stats = activate(feats, bias, norm, **options)
    got = [out, *activate_backward(grad, out, feats, bias, norm, stats, **options)]
    for a, b in zip(got, _torch(feats, bias, norm, activation, 0.25, ids, grad), strict=False):
        close(a, b)


def test_in_place_and_without_bias():
    feats, grad = rows_of(40, 37), rows_of(40, 37, seed=1)
    expected, _ = activate(feats)
    np.testing.assert_array_equal(expected, np.maximum(feats, 0))
    out, _ = activate(feats, out=feats)
    assert out is feats
    expected = np.where(out > 0, grad, 0)
    got, grad_bias, _, _ = activate_backward(grad, out, grad_feats=grad)
    assert got is grad
    np.testing.assert_array_equal(got, expected)
    close(grad_bias, expected.sum(axis=0))


def test_bfloat16_rows():
    bits, ids = reference.to_bfloat16(rows_of(30, 37)), np.arange(30)
    out, _ = activate(bits, p=0.5, row_ids=ids, **DRAW)
    full, _ = activate(reference.widened(bits), p=0.5, row_ids=ids, **DRAW)
    np.testing.assert_array_equal(out, reference.to_bfloat16(full))


def test_bad_arguments():
    with pytest.raises(ValueError, match="activation"):
        activate(rows_of(3, 4), activation="gelu")
    with pytest.raises(ValueError, match="row_ids"):
        activate(rows_of(3, 4), p=0.5)
    with pytest.raises(ValueError, match="bias"):
        activate(rows_of(3, 4), np.zeros(5))
