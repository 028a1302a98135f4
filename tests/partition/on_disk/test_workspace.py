"""The memory of a cut on disk: mapped pages are given back."""

import numpy as np

from distgnn.partition.on_disk.workspace import MemoryLimit, resident


def test_mapped_pages_are_given_back(tmp_path):
    values = np.lib.format.open_memmap(tmp_path / "values.npy", mode="w+", dtype=np.int64, shape=(1 << 22,))
    values[:] = np.arange(len(values))
    before, own = resident()
    MemoryLimit(10**9).give_back()
    assert resident()[0] < before - 24_000_000
    assert resident()[1] < own + 4_000_000
    assert int(values[12345]) == 12345
