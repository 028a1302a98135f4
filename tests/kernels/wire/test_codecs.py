"""Rows on the wire: sizes, errors, no bias, the same bits everywhere."""

import numpy as np
import pytest

from distgnn.config.schedule import WIRES, row_bytes
from distgnn.kernels import decode_rows, encode_rows
from distgnn.kernels.check import reference

from ..graphs import rows_of

DRAW = {"seed": 1, "step": 2, "site": 3}
LEVELS = {wire: found.levels for wire, found in WIRES.items() if found.levels}


def _coded(feats, rows, wire, **options):
    ids = np.arange(len(feats)) * 11
    return encode_rows(feats, rows, wire, row_ids=ids, **{**DRAW, **options})


@pytest.mark.parametrize("wire", ["float32", "bfloat16", "int8", "int4"])
def test_round_trip(wire, num_threads):
    feats, rows = rows_of(20, 37), np.array([3, 19, 0, 7])
    feats[19] = 0
    packed = _coded(feats, rows, wire)
    assert packed.shape == (4, row_bytes(37, wire)) and packed.dtype == np.uint8
    out, back = np.full((4, 37), 9, np.float32), feats[rows]
    decode_rows(packed, wire, out)
    if wire == "bfloat16":
        back = reference.widened(reference.to_bfloat16(back))
    step = np.abs(back).max(axis=1, keepdims=True) / LEVELS[wire] if wire in LEVELS else 1e-30
    assert (np.abs(out - back) <= step * 1.00001).all()


@pytest.mark.parametrize("wire", ["int8", "int4"])
def test_rounding_has_no_bias(wire):
    """2,000 draws of one row: the mean is within 5 standard deviations (at most half a step each)."""
    feats, total = rows_of(1, 37), np.zeros((1, 37))
    for step in range(2000):
        total += decode_rows(_coded(feats, np.array([0]), wire, step=step), wire, np.zeros((1, 37), np.float32))
    step = np.abs(feats).max() / LEVELS[wire]
    assert np.abs(total / 2000 - feats).max() < 5 * step / 2 / np.sqrt(2000)


def test_bits_follow_the_row():
    feats, order = rows_of(300, 37), np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(_coded(feats, order, "int8"), _coded(feats, np.arange(300), "int8")[order])


def test_bad_arguments():
    feats = rows_of(3, 4)
    with pytest.raises(ValueError, match="wire"):
        encode_rows(feats, np.arange(3), "int2")
    with pytest.raises(ValueError, match="row_ids"):
        encode_rows(feats, np.arange(3), "int8")
    with pytest.raises(ValueError, match="packed"):
        decode_rows(np.zeros((3, 5), np.uint8), "int8", feats)
