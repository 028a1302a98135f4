"""CopyTable: how many edges each vertex has in each part; it has a copy in every part where that is not 0.

A table of N x P counts would not fit in memory, and most of its entries would be 0. There are two layouts instead, by
the degree of a vertex. P = 8 here, vertex 4 has degree 1 (*sparse*: 4 * degree < P), vertex 5 degree 9 (*dense*):

    first   vertex: copies, degree
    4   17       1       1       slots[17]        = 6 << 15 | 1           one edge in part 6
    5   64       3       9       counts[64 .. 71] = 0 2 0 0 6 0 0 1       2 edges in part 1, 6 in part 4, 1 in part 7

*Sparse*: one slot for each edge, because there cannot be more copies than edges. The copies come first, in no order, as
`part << 15 | count`. *Dense*: one byte for each part, in order of the parts, 0 where there is no copy. All parts of a
dense vertex can be priced in vector instructions, and a look-up costs one cache line.

*The saturation rule*: a byte counts to 255 (`SATURATED`) and then neither rises nor falls, because how many edges are
beyond it has been forgotten: such a copy is taken for one that never vanishes. Counts below 255 are exact.

What works on these tables is compiled without numba's reference counts (`counted=False`): it counted every field of a
tuple at every access, two thirds of the time of a refinement.

Shapes: N vertices, M edges, P parts (below 2**15).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import own_ranges, run
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import BLOCK_EDGES, WORD, Edges, own_ends

PART_SHIFT = 15  # a slot is part << PART_SHIFT | count
COUNT_MASK = (1 << PART_SHIFT) - 1
SATURATED = 255  # of a byte
COPIES, DEGREE = 0, 1  # columns of CopyTable.vertex
AHEAD = 16  # edges between asking for a vertex's copies and looking at them
LINE_BYTES = 64
LINE = Tile(lanes=32, offsets=(0,), heads=(0,))


class CopyTable(NamedTuple):
    """first: int64 [N], where the counts of a vertex begin in `counts` (dense) or `slots` (sparse); vertex: int32
    [N, 2], its copies and its degree (`first` and `vertex` are columns of one array); counts: uint8; slots: int32."""

    first: np.ndarray
    vertex: np.ndarray
    counts: np.ndarray
    slots: np.ndarray
    num_parts: int


def table_bytes(degrees: np.ndarray, num_parts: int) -> int:
    dense = 4 * degrees.astype(np.int64) >= num_parts
    slots = int(degrees.sum(where=~dense, dtype=np.int64))
    return 16 * len(degrees) + num_parts * int(np.count_nonzero(dense)) + 4 * slots


def empty_table(degrees: np.ndarray, num_parts: int) -> CopyTable:
    """A table without any copy, with room for all that edges of these degrees [N] can make."""
    # 16 bytes for each vertex, in one array: a look-up of `first` and `vertex` touches one cache line instead of two.
    records = np.zeros((len(degrees), 4), dtype=np.int32)
    first, vertex = records.view(np.int64)[:, 0], records[:, 2:]
    num_bytes, num_slots = _lay_out(degrees, num_parts, first, vertex)
    # Bytes begin at a cache line: of 32 or 64 parts, no vertex lies in two lines.
    counts = np.zeros(num_bytes + LINE_BYTES, dtype=np.uint8)
    counts = counts[-counts.ctypes.data % LINE_BYTES :][:num_bytes]
    return CopyTable(first, vertex, counts, np.zeros(num_slots, dtype=np.int32), num_parts)


@kernel
def _lay_out(degrees, num_parts, first, vertex):
    """Where each vertex's counts begin; returns how many bytes and slots there are."""
    num_bytes = num_slots = 0
    for v in range(degrees.shape[0]):
        degree = np.int64(degrees[v])
        vertex[v, DEGREE] = degree
        if 4 * degree >= num_parts:
            first[v] = num_bytes
            num_bytes += num_parts
        else:
            first[v] = num_slots
            num_slots += degree
    return num_bytes, num_slots


def count_edges(edge_list: Edges, edge_part: np.ndarray, table: CopyTable) -> None:
    """Count all edges of an edge list at both ends, a self-loop once. Each thread counts at its own vertices."""
    run(_count_edges, vertex_ranges(table), edge_list.src, edge_list.dst, edge_part, table)


def vertex_ranges(table: CopyTable) -> list[int]:
    """Bounds of the vertices at which each thread counts, see `own_ranges`."""
    indptr = np.zeros(len(table.vertex) + 1, dtype=np.int64)
    np.cumsum(table.vertex[:, DEGREE], out=indptr[1:])
    return own_ranges(indptr)


@kernel
def _count_edges(low, high, src, dst, edge_part, table):
    """Count at the vertices from low to high."""
    own = np.empty((2 * BLOCK_EDGES, 2), dtype=np.int64)
    for first in range(0, src.shape[0], BLOCK_EDGES):
        last = min(first + BLOCK_EDGES, src.shape[0])
        _count_own(own, own_ends(low, high, first, last, src, dst, own, True), edge_part, table)


@inline(counted=False)
def _count_own(own, size, edge_part, table):
    for i in range(size):
        prefetch_copies(table, own[min(i + AHEAD, size - 1), 0], own[min(i + 2 * AHEAD, size - 1), 0])
        add_edge(table, own[i, 0], edge_part[own[i, 1]], 1)


@inline(counted=False)
def prefetch_copies(table, soon, later):
    """Prefetch the counts of vertex `soon`, and the record that says where the counts of `later` are.

    Two distances, because a count is found through a record: the record must have come before its counts can be asked
    for. A look-up that misses the cache took 160 ns without prefetch, 20 with it (docs/internals/cmr.md).
    """
    # The record of v begins at 4 * v int32, `vertex` in the middle of it: both in one line.
    prefetch(WORD, table.vertex, 4 * np.int64(later))
    if is_dense(table, soon):
        prefetch(LINE, table.counts, table.first[soon])
    else:
        prefetch(WORD, table.slots, table.first[soon])


@inline(counted=False)
def is_dense(table, v):
    """Whether v has a byte for each part, in order."""
    return 4 * np.int64(table.vertex[v, DEGREE]) >= table.num_parts


@inline(counted=False)
def num_edges_in(table, v, p):
    """Edges of v in part p, at most `SATURATED` where v is dense."""
    begin = table.first[v]
    if is_dense(table, v):
        return np.int32(table.counts[begin + p])
    for i in range(begin, begin + table.vertex[v, COPIES]):
        if table.slots[i] >> PART_SHIFT == p:
            return table.slots[i] & np.int32(COUNT_MASK)
    return np.int32(0)


@inline(counted=False)
def add_edge(table, v, p, more):
    """Count `more` more edges of v in part p; returns whether that made a new copy."""
    begin = table.first[v]
    if is_dense(table, v):
        count = np.int32(table.counts[begin + p])
        table.counts[begin + p] = min(count + more, np.int32(SATURATED))
        table.vertex[v, COPIES] += count == 0
        return count == 0
    end = begin + table.vertex[v, COPIES]
    for i in range(begin, end):
        if table.slots[i] >> PART_SHIFT == p:
            table.slots[i] += more
            return False
    # A slot is free: v has one for each of its edges, and each copy so far has an edge that is not this one.
    table.slots[end] = (np.int32(p) << PART_SHIFT) + more
    table.vertex[v, COPIES] += 1
    return True


@inline(counted=False)
def remove_edge(table, v, p):
    """Count one edge less of v in part p, which has one; returns whether that removed the copy."""
    begin = table.first[v]
    if is_dense(table, v):
        # Plain: if count < SATURATED: count -= 1. See the saturation rule in the header.
        count = table.counts[begin + p]
        table.counts[begin + p] = count - (count < SATURATED)
        table.vertex[v, COPIES] -= count == 1
        return count == 1
    end = begin + table.vertex[v, COPIES]
    for i in range(begin, end):
        if table.slots[i] >> PART_SHIFT == p:
            table.slots[i] -= 1
            if table.slots[i] & COUNT_MASK:
                return False
            table.slots[i] = table.slots[end - 1]  # copies have no order: the last one takes the free slot
            table.vertex[v, COPIES] -= 1
            return True
    return False


@inline(counted=False)
def add_parts_of(table, v, home, num_present):
    """num_present[p] += 1 for each part p that has an edge of v; in part `home` (-1: none) one edge does not count."""
    begin = table.first[v]
    if is_dense(table, v):
        # All parts in a loop without a branch, which becomes vector instructions; then `home` is put right.
        for p in range(table.num_parts):
            num_present[p] += table.counts[begin + p] > 0
        if home >= 0:
            num_present[home] -= table.counts[begin + home] == 1
        return
    for i in range(begin, begin + table.vertex[v, COPIES]):
        slot = table.slots[i]
        p = slot >> PART_SHIFT
        num_present[p] += (slot & COUNT_MASK) > (p == home)


@kernel(counted=False)
def count_copies(table, num_copies):
    """num_copies [P] += the copies in each part."""
    for v in range(table.vertex.shape[0]):
        add_parts_of(table, v, -1, num_copies)
