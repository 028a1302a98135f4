"""Fused bias, norm, activation and dropout against torch's autograd with the same mask.

Dropout masks belong to vertices.
"""

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


KEY = {"seed": 3, "step": 11, "site": 2}


@pytest.mark.parametrize(("width", "dtype"), [(37, np.float64), (320, np.float32)])
def test_against_reference(width, dtype, num_threads):
    feats, ids = rows_of(12, width, dtype), np.arange(12) * 2**36
    np.testing.assert_array_equal(dropout(feats, ids, 0.4, **KEY), reference.dropout(feats, ids, 0.4, **KEY))


def test_rows_carry_their_mask_with_them(num_threads):
    feats, ids = np.ones((200, 37), np.float32), np.random.default_rng(0).integers(0, 2**62, 200)
    order = np.random.default_rng(1).permutation(200)
    np.testing.assert_array_equal(dropout(feats, ids, 0.5, **KEY)[order], dropout(feats, ids[order], 0.5, **KEY))


def test_every_part_of_the_key_counts():
    feats, ids = np.ones((50, 37), np.float32), np.arange(50)
    changes = [{}, {"seed": 4}, {"step": 12}, {"site": 3}]
    changes += [{name: KEY[name] + (1 << 32)} for name in ("seed", "step")]  # both are of 64 bits
    masks = [dropout(feats, ids, 0.5, **{**KEY, **change}) for change in changes]
    masks += [dropout(feats, ids + more, 0.5, **KEY) for more in (50, 1 << 32)]
    for i, a in enumerate(masks):
        for b in masks[:i]:
            assert 0.4 < (a == b).mean() < 0.6


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_shares(p):
    """320,000 draws: five standard deviations of the share are 0.0044 at most; rows and columns alike."""
    out = dropout(np.ones((1000, 320), np.float32), np.arange(1000), p, **KEY)
    assert set(np.unique(out)) == {np.float32(0), np.float32(1 / (1 - p))}
    assert abs((out == 0).mean() - p) < 0.0045
    assert abs((out == 0).mean(axis=0) - p).max() < 0.08 and abs((out == 0).mean(axis=1) - p).max() < 0.15


def test_limits_and_in_place():
    feats, ids = rows_of(5, 37), np.arange(5)
    np.testing.assert_array_equal(dropout(feats, ids, 0.0, **KEY), feats)
    assert not dropout(feats, ids, 1.0, **KEY).any()
    expected = dropout(feats, ids, 0.5, **KEY)
    assert dropout(feats, ids, 0.5, out=feats, **KEY) is feats
    np.testing.assert_array_equal(feats, expected)


def test_bad_arguments_of_dropout():
    feats = rows_of(5, 10)
    with pytest.raises(ValueError):
        dropout(feats, np.arange(5), 1.5, **KEY)
    with pytest.raises(ValueError):
        dropout(feats, np.arange(4), 0.5, **KEY)
