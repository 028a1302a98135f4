"""Rows sorted by their lower-degree end, and vertices renumbered by cluster, with arrays that may lie on disk.

Rows are dealt into buckets of neighbouring ends first and sorted inside each bucket then: every array is read and
written in a few sequential streams, so it may be a file.

Shapes: N vertices, M rows, K clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64

from distgnn.kernels.jit import kernel

MOST_BUCKETS = 1024
BUCKET_ROWS = 1 << 19
BLOCK_ROWS = 1 << 20
NAMES = ("low", "high", "tag")


class Numbering(NamedTuple):
    """number: int32 [N], new number of each vertex, by cluster (largest first), then id; begins: int64 [K + 1]."""

    number: np.ndarray
    begins: np.ndarray


class SortedRows(NamedTuple):
    """low, high: int32 [M], a row's ends, the one of lower degree first; tag: row << 1 | whether that is its target."""

    low: np.ndarray
    high: np.ndarray
    tag: np.ndarray


def number_by_cluster(labels: np.ndarray, volumes: np.ndarray) -> Numbering:
    """Number vertices by cluster, clusters by volume (largest first; ties: lower label).

    Args: labels: [N], the vertex whose cluster each is in; volumes: int64 [N], degrees of the cluster of each label.
    """
    sizes = np.bincount(labels, minlength=len(labels))
    present = np.flatnonzero(sizes)
    present = present[np.argsort(-volumes[present], kind="stable")]
    begins = np.zeros(len(present) + 1, dtype=np.int64)
    np.cumsum(sizes[present], out=begins[1:])
    sizes[present] = begins[:-1]  # now: the next number in each cluster
    number = np.empty(len(labels), dtype=np.int32)
    _number(labels, sizes, number)
    return Numbering(number, begins)


@kernel
def _number(labels, next_number, number):
    for v in range(labels.shape[0]):
        number[v] = next_number[labels[v]]
        next_number[labels[v]] += 1


def number_by_degree(degrees: np.ndarray) -> np.ndarray:
    """Number int32 [N] of each vertex, largest degree first; ties: lower id."""
    number = np.empty(len(degrees), dtype=np.int32)
    number[np.argsort(-degrees, kind="stable")] = np.arange(len(degrees), dtype=np.int32)
    return number


def sort_rows(edge_list, degrees: np.ndarray, number: np.ndarray, empty, step) -> SortedRows:
    """Rows sorted by their lower-degree end, then by row, under new numbers of vertices (ties: lower number).

    Args: degrees, number: [N]; empty: `empty(name, size, dtype)` makes an array; step: `step(done, total)` hears of it.
    """
    keys = degrees.astype(np.int64)
    keys <<= 32
    keys |= number

    def block(begin: int, end: int) -> SortedRows:
        rows = _new_rows(end - begin, len(edge_list.src), "", lambda name, size, dtype: np.empty(size, dtype))
        _order_ends(edge_list.src[begin:end], edge_list.dst[begin:end], begin, keys, rows)
        return rows

    return _sorted(block, len(edge_list.src), len(keys), "first_", empty, step)


def renumber_rows(rows: SortedRows, number: np.ndarray, empty, step) -> SortedRows:
    """The same rows under other numbers of the vertices [N], sorted by the new number of their lower end."""

    def block(begin: int, end: int) -> SortedRows:
        low, high = number[rows.low[begin:end]], number[rows.high[begin:end]]
        return SortedRows(low, high, rows.tag[begin:end])

    return _sorted(block, len(rows.low), len(number), "", empty, step)


def _new_rows(size: int, num_rows: int, prefix: str, empty) -> SortedRows:
    tag = np.uint32 if num_rows < 2**31 else np.uint64  # a row and one bit more
    return SortedRows(
        *(empty(prefix + name, size, t) for name, t in zip(NAMES, (np.int32, np.int32, tag), strict=True))
    )


def _sorted(block, size: int, num_nodes: int, prefix: str, empty, step) -> SortedRows:
    """Sort by `low`, stable. Args: block: `block(begin, end)` gives some rows."""
    buckets = min(MOST_BUCKETS, max(1, size // BUCKET_ROWS))
    width = max(1, -(-num_nodes // buckets))
    counts = np.zeros(buckets, dtype=np.int64)
    pieces = [(begin, min(begin + BLOCK_ROWS, size)) for begin in range(0, size, BLOCK_ROWS)]
    for done, piece in enumerate(pieces):
        _count_buckets(block(*piece).low, width, counts)
        step(done + 1, 3 * len(pieces))
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows, places = _new_rows(size, size, prefix, empty), starts[:-1].copy()
    for done, piece in enumerate(pieces):
        _deal(block(*piece), width, places, rows)
        step(len(pieces) + done + 1, 3 * len(pieces))
    for bucket in range(buckets):
        _sort_bucket(rows, starts[bucket], starts[bucket + 1], bucket * width, width)
        step(2 * len(pieces) + len(pieces) * (bucket + 1) // buckets, 3 * len(pieces))
    return rows


@kernel
def _order_ends(src, dst, first_row, keys, rows):
    for e in range(src.shape[0]):
        a, b = keys[src[e]], keys[dst[e]]
        swapped = b < a
        if swapped:
            a, b = b, a
        rows.low[e] = a & 0xFFFFFFFF
        rows.high[e] = b & 0xFFFFFFFF
        rows.tag[e] = uint64(2 * (first_row + e) + swapped)


@kernel
def _count_buckets(low, width, counts):
    for e in range(low.shape[0]):
        counts[low[e] // width] += 1


@kernel
def _deal(block, width, places, rows):
    for e in range(block.low.shape[0]):
        place = places[block.low[e] // width]
        places[block.low[e] // width] += 1
        rows.low[place] = block.low[e]
        rows.high[place] = block.high[e]
        rows.tag[place] = block.tag[e]


@kernel
def _sort_bucket(rows, begin, end, first, width):
    """Sort rows begin to end, whose lower ends are first to first + width, in place; stable."""
    low, high, tag = rows.low[begin:end].copy(), rows.high[begin:end].copy(), rows.tag[begin:end].copy()
    places = np.zeros(width + 1, dtype=np.int64)
    for i in range(low.shape[0]):
        places[low[i] - first + 1] += 1
    for j in range(width):
        places[j + 1] += places[j]
    for i in range(low.shape[0]):
        place = begin + places[low[i] - first]
        places[low[i] - first] += 1
        rows.low[place] = low[i]
        rows.high[place] = high[i]
        rows.tag[place] = tag[i]
