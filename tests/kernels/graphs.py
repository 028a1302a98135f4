"""Small awkward graphs for kernel tests: (indptr, indices, number of sources)."""

import numpy as np

from distgnn.kernels.check import reference


def awkward(name, index_dtype=np.int32):
    """A named graph; every one has another way to go wrong."""
    generator = np.random.default_rng(7)
    src, dst, rows = {
        "random": (generator.integers(0, 50, 400), generator.integers(0, 60, 400), 60),
        "hub": (generator.integers(0, 50, 400), np.where(generator.random(400) < 0.7, 11, 3), 30),
        "no edges": (np.zeros(0), np.zeros(0), 5),
        "no rows": (np.zeros(0), np.zeros(0), 0),
        "one loop": (np.zeros(1), np.zeros(1), 1),
        "isolated": (np.full(9, 4), np.arange(9) * 2, 40),
        "duplicates": (np.repeat(np.arange(5), 6), np.repeat(np.arange(5), 6), 7),
    }[name]
    indptr, indices, _ = reference.csr_from_edges(src.astype(index_dtype), dst.astype(index_dtype), rows)
    return indptr, indices, 50


NAMES = ("random", "hub", "no edges", "no rows", "one loop", "isolated", "duplicates")


def rows_of(num_rows, width, dtype=np.float32, seed=0):
    """Normal rows."""
    return np.random.default_rng(seed).standard_normal((num_rows, width)).astype(dtype)


def close(got, expected):
    """Equal up to the rounding of a few hundred terms in the dtype of `got`."""
    tolerance = {"float32": 2e-5, "float64": 1e-13}[got.dtype.name]
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * 10)
