"""The graphs and random rows on which kernels are compared with their references."""

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
    def num_arcs(self) -> int:
        return len(self.indices)


def _large_graph() -> Graph:
    """300 arcs from 41 sources to targets 0 … 39, with a hub (row 3) and rows 30 … 39 without any arc."""
    generator = np.random.default_rng(0)
    src, dst = generator.integers(0, 41, 300), generator.integers(0, 30, 300)
    dst[generator.random(300) < 0.2] = 3
    indptr, indices, _ = reference.csr_from_edges(src, dst, 40)
    return Graph(indptr, indices, 41)


# One target without arcs, one with most of them, odd and even numbers of arcs: small, because its references run within
# a user's first call.
SMALL = Graph(
    np.array([0, 11, 11, 12, 15, 19, 20]),
    np.array([8, 0, 3, 3, 1, 7, 5, 2, 6, 4, 0, 8, 1, 2, 3, 8, 0, 6, 5, 7]),
    9,
)
# More arcs in a row than attention takes at a time (CHUNK = 32), and rows for whole groups of six in a product.
LARGE = _large_graph()


def like(value, rows, seed=0):
    """Random rows with the dtype and width of `value`, None for None."""
    if value is None:
        return None
    value = np.asarray(value)
    random = np.random.default_rng([seed, rows]).standard_normal((rows, *value.shape[1:]))
    if value.dtype == np.uint16:
        return reference.to_bfloat16(random)
    return random.astype(value.dtype if value.dtype.kind == "f" else np.float32)


def distinct_ids(value, rows):
    """Distinct ids in the dtype of `value`; every bit of 64-bit ones is used."""
    ids = np.random.default_rng(7).permutation(rows)
    dtype = np.asarray(value).dtype
    # Masks are drawn from both words of an id: with small ids a kernel that drops the upper one would pass.
    return ids * (2**40 // 8 + 1) if dtype == np.int64 else ids.astype(dtype)


def permuted(value, rows):
    return None if value is None else np.random.default_rng(3).permutation(rows).astype(np.asarray(value).dtype)


def csr_of(given: dict, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    return graph.indptr, graph.indices.astype(np.asarray(given["indices"]).dtype)


def pick(given, *names):
    return {name: given[name] for name in names if name in given}
