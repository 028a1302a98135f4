"""Tuning changes time, not bits."""

import numpy as np
import pytest

from distgnn.kernels import Tuning, spmm, tune

from .graphs import awkward, rows_of


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
