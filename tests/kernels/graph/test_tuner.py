"""Tuning changes time, not bits."""

import numpy as np
import pytest

from distgnn.kernels import Tuning, spmm, tune, tune_rows, use_tunings
from distgnn.kernels.runtime.tiles import choices

from ..graphs import awkward, rows_of


@pytest.mark.parametrize("choice", [Tuning(1), Tuning(64, 4), Tuning(16, 2)])
def test_same_bits(choice):
    indptr, indices, sources = awkward("hub")
    feats = rows_of(sources, 100)
    np.testing.assert_array_equal(spmm(indptr, indices, feats, tuning=choice), spmm(indptr, indices, feats))


@pytest.mark.parametrize("name", ["random", "no edges", "no rows"])
def test_tune_gives_plain_integers(name):
    indptr, indices, sources = awkward(name)
    choice = tune(indptr, indices, rows_of(sources, 100), seconds=0.05)
    assert all(type(value) is int for value in choice)
    assert Tuning(**choice._asdict()) == choice


@pytest.mark.parametrize("name", ["random", "no edges", "no rows"])
def test_tune_rows_needs_no_rows(name):
    indptr, indices, sources = awkward(name)
    found = tune_rows(indptr, indices, sources, row_bytes=(64, 400), seconds=0.02)
    assert set(found) == ({64, 400} if len(indices) else set())
    assert all(isinstance(choice, Tuning) for choice in found.values())


def test_the_nearest_measured_width_is_used_and_bits_stay():
    indptr, indices, sources = awkward("hub")
    feats = rows_of(sources, 100)
    expected = spmm(indptr, indices, feats)
    use_tunings({64: (8, 0), 512: (64, 0)})
    try:
        assert choices.of(400).ahead == 64 and choices.of(4).ahead == 8 and choices.of(0).ahead == 8
        np.testing.assert_array_equal(spmm(indptr, indices, feats), expected)
    finally:
        use_tunings({})
    assert choices.of(400) == Tuning()
