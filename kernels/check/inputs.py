"""The graph and the random rows on which kernels are compared with their references."""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from distgnn.kernels.check import reference

Pairs = Iterable[tuple[Any, Any]]  # (got, expected)


class Graph(NamedTuple):
    """Arcs by target: the sources of row i are indices[indptr[i] : indptr[i + 1]]."""

    indptr: np.ndarray
    indices: np.ndarray
    num_sources: int

    @property
    def num_targets(self) -> int:
        return len(self.indptr) - 1

    @property
    def csr(self) -> tuple[np.ndarray, np.ndarray]:
        return self.indptr, self.indices

    @property
    def num_arcs(self) -> int:
        return len(self.indices)


@functools.cache
def large_graph() -> Graph:
    """300 arcs from 41 sources to targets 0 … 39, with a hub (row 3) and rows 30 … 39 without any arc."""
    # More arcs in a row than attention takes at a time (CHUNK = 32), and rows for whole groups of six in a product.
    generator = np.random.default_rng(0)
    src, dst = generator.integers(0, 41, 300), generator.integers(0, 30, 300)
    dst[generator.random(300) < 0.2] = 3
    indptr, indices, _ = reference.csr_from_edges(src, dst, 40)
    return Graph(indptr, indices.astype(np.int32), 41)


class Rows(NamedTuple):
    """Random rows of one dtype: float32, float64 or bfloat16, and how wide cases make them."""

    dtype: str
    width: int = 37  # whole vectors and a remainder
    heads: int = 4
    each: int = 9  # columns of a head

    @property
    def full(self) -> int:
        return self.heads * self.each

    @property
    def is_narrow(self) -> bool:
        return self.dtype == "bfloat16"

    def __call__(self, count: int, *tail: int, seed: int = 0) -> np.ndarray:
        found = self.wide(count, *tail, seed=seed)
        return reference.to_bfloat16(found) if self.is_narrow else found

    def wide(self, count: int, *tail: int, seed: int = 0) -> np.ndarray:
        """The same in the dtype that they are summed in."""
        random = np.random.default_rng([seed, count]).standard_normal((count, *tail))
        return random.astype("float32" if self.is_narrow else self.dtype)


def distinct_ids(rows):
    # Masks are drawn from both words of an id: with small ids a kernel that drops the upper one would pass.
    return np.random.default_rng(7).permutation(rows) * (2**40 // 8 + 1)


def permuted(rows):
    return np.random.default_rng(3).permutation(rows)
