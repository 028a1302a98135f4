"""What is measured for a graph says where sums go by blocks, and nothing else."""

import numpy as np
import pytest

from distgnn.kernels import Tuning, tune_rows
from distgnn.kernels.graph import blocks, tuner

from ..graphs import awkward


@pytest.mark.parametrize("name", ["random", "no edges", "no rows"])
@pytest.mark.parametrize(("worth", "expected"), [(np.inf, {64}), (0, set())])
def test_row_sizes_are_chosen_by_time(monkeypatch, name, worth, expected):
    """Sources of 256 bytes need more scratch memory than is allowed here."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64 * 10)
    monkeypatch.setattr(blocks, "FEWEST_ARCS", 0)
    monkeypatch.setattr(tuner, "SCRATCH_BYTES", 50 * 64)
    monkeypatch.setattr(tuner, "BLOCKS_WORTH", worth)
    indptr, indices, sources = awkward(name)
    assert tune_rows(indptr, indices, sources, row_bytes=(64, 256)) == expected


def test_nothing_is_timed_where_blocks_cannot_pay(monkeypatch):
    monkeypatch.setattr(tuner, "spmm", None)  # calling it would fail
    assert tune_rows(*awkward("random")) == set()


def test_the_nearest_measured_size_decides():
    found = Tuning(frozenset({64, 512}))
    assert [found.goes_by_blocks(size) for size in (0, 64, 100, 180, 256, 400, 600, 4096)] == [
        True, True, True, False, False, True, True, False
    ]  # fmt: skip
    assert not Tuning().goes_by_blocks(64)
