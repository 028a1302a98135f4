"""CSR from edges and its transpose."""

import numpy as np
import pytest

from distgnn.kernels import csr_from_edges, transpose_csr
from distgnn.kernels.check import reference
from distgnn.kernels.graph import csr


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("edges", [0, 1, 1000])
def test_csr_is_a_stable_sort(edges, dtype, num_threads, monkeypatch):
    monkeypatch.setattr(csr, "BLOCK_EDGES", 10)
    generator = np.random.default_rng(2)
    src, dst = generator.integers(0, 90, edges).astype(dtype), generator.integers(0, 70, edges).astype(dtype)
    got = csr_from_edges(src, dst, 71)
    for a, b in zip(got, reference.csr_from_edges(src, dst, 71), strict=True):
        np.testing.assert_array_equal(a, b)
    assert got[1].dtype == dtype


def test_bad_arguments():
    with pytest.raises(ValueError):
        csr_from_edges(np.arange(3), np.arange(2), 5)
    with pytest.raises(ValueError):
        csr_from_edges(np.arange(3), np.arange(3), 2)
    with pytest.raises(ValueError):
        csr_from_edges(np.arange(3), np.array([0, -1, 1]), 2)
    with pytest.raises(ValueError):
        transpose_csr(np.array([0, 2]), np.arange(3), 5)
