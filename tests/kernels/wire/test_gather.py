"""Packing and adding rows."""

import numpy as np
import pytest

from distgnn.kernels import add_rows, pack_rows
from distgnn.kernels.check import reference

from ..graphs import rows_of


@pytest.mark.parametrize(("width", "dtype"), [(0, np.float32), (31, np.float32), (37, np.float64)])
def test_pack_and_add(width, dtype, num_threads):
    feats, rows = rows_of(30, width, dtype), np.array([4, 29, 0, 7], np.int32)
    buffer = np.zeros((6, width), dtype)
    packed = pack_rows(feats, rows, out=buffer[1:5])
    assert not buffer[[0, 5]].any()
    np.testing.assert_array_equal(packed, feats[rows])
    expected = reference.add_rows(feats, rows, packed)
    assert add_rows(feats, rows, packed) is feats
    np.testing.assert_array_equal(feats, expected)


def test_bfloat16_on_either_side():
    feats, rows = rows_of(9, 37), np.array([3, 8, 0])
    bits = pack_rows(feats, rows, out=np.zeros((3, 37), np.uint16))
    np.testing.assert_array_equal(bits, reference.to_bfloat16(feats[rows]))
    np.testing.assert_array_equal(pack_rows(bits, np.arange(3)), bits)
    added = add_rows(feats.copy(), rows, bits)
    np.testing.assert_array_equal(added[rows], feats[rows] + reference.widened(bits))


def test_bad_arguments():
    with pytest.raises(ValueError):
        pack_rows(rows_of(9, 4), np.array([1]), out=np.zeros((2, 4), np.float32))
    with pytest.raises(ValueError):
        add_rows(rows_of(9, 4), np.array([1, 2]), rows_of(3, 4))
    with pytest.raises(ValueError):
        add_rows(rows_of(9, 4), np.array([1]), rows_of(1, 4, np.float64))
