"""Dropout masks belong to vertices."""

import numpy as np
import pytest

from distgnn.kernels import dropout
from distgnn.kernels.check import reference

from ..graphs import rows_of

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


def test_bad_arguments():
    feats = rows_of(5, 10)
    with pytest.raises(ValueError):
        dropout(feats, np.arange(5), 1.5, **KEY)
    with pytest.raises(ValueError):
        dropout(feats, np.arange(4), 0.5, **KEY)
