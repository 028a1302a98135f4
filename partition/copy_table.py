"""CopyTable: how many edges each vertex has in each part, with room only for what can be.

A vertex of few edges (fewer than a quarter of the parts) is *sparse*: it has a slot for each edge, and its copies, in
no order, fill the first of them with `part * 2**15 + count`. A vertex of more edges is *dense*: a byte for each part,
in order, holds the count, so that all parts can be looked at in vector instructions and a look costs one line of the
cache; 0 is no copy. A byte counts to 255 and then stays there: such a copy is not taken for one that could vanish.

What works on these tables is compiled without numba's reference counts: it counted every field of a tuple at every
access, two thirds of the time of a refinement.

Shapes: N vertices, P parts (below 2**15).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.jit import inline, kernel
from distgnn.kernels.threads import own_ranges, run
from distgnn.kernels.tiles import Tile
from distgnn.kernels.vectors import prefetch

PART_SHIFT = 15
COUNT_MASK = (1 << PART_SHIFT) - 1
MOST = 255
AHEAD = 16  # edges between asking for a vertex's copies and looking at them
RECORD = Tile(lanes=2, offsets=(0,), heads=(0,))
LINE = Tile(lanes=32, offsets=(0,), heads=(0,))


class CopyTable(NamedTuple):
    """first: int64 [N], where the copies of a vertex begin in `bytes` (dense) or `slots` (sparse); used: int32 [N, 2],
    its copies and its degree; bytes: uint8; slots: int32."""

    first: np.ndarray
    used: np.ndarray
    bytes: np.ndarray
    slots: np.ndarray
    num_parts: int


def table_bytes(degrees: np.ndarray, num_parts: int) -> int:
    """Memory of the table of vertices of these degrees [N]."""
    dense = 4 * degrees.astype(np.int64) >= num_parts
    slots = int(degrees.sum(where=~dense, dtype=np.int64))
    return 16 * len(degrees) + num_parts * int(np.count_nonzero(dense)) + 4 * slots


def empty_table(degrees: np.ndarray, num_parts: int) -> CopyTable:
    """A table without any copy, with room for all that edges of these degrees [N] can make."""
    used = np.stack([np.zeros(len(degrees), dtype=np.int32), degrees.astype(np.int32)], axis=1)
    dense = 4 * degrees.astype(np.int64) >= num_parts
    slots = np.where(dense, 0, degrees).astype(np.int64)
    dense_before = np.cumsum(dense) - dense
    first = np.where(dense, num_parts * dense_before, np.cumsum(slots) - slots)
    num_bytes = num_parts * int(np.count_nonzero(dense))
    counts = np.zeros(num_bytes, dtype=np.uint8), np.zeros(int(slots.sum()), dtype=np.int32)
    return CopyTable(first, used, *counts, num_parts)


def table_of(edge_list, edge_part: np.ndarray, degrees: np.ndarray, num_parts: int) -> CopyTable:
    """The table of a cut whose rows keep both arcs together; a self-loop counts once."""
    table = empty_table(degrees, num_parts)
    add_rows(edge_list, edge_part, table)
    return table


def add_rows(edge_list, edge_part: np.ndarray, table: CopyTable) -> None:
    """Count the rows of an edge list; a self-loop once. Each thread counts at its own vertices."""
    indptr = np.zeros(len(table.used) + 1, dtype=np.int64)
    np.cumsum(table.used[:, 1], out=indptr[1:])
    run(_add_rows, own_ranges(indptr), edge_list.src, edge_list.dst, edge_part, table)


@kernel(_nrt=False)
def _add_rows(low, high, src, dst, edge_part, table):
    """Count at the vertices from low to high."""
    last = src.shape[0] - 1
    for e in range(src.shape[0]):
        soon = dst[min(e + AHEAD, last)]
        if low <= soon < high:
            ask_for(table, soon, dst[min(e + 2 * AHEAD, last)])
        if low <= src[e] < high:
            add_copy(table, src[e], edge_part[e])
        if low <= dst[e] < high and dst[e] != src[e]:
            add_copy(table, dst[e], edge_part[e])


@inline(_nrt=False)
def ask_for(table, soon, later):
    """Prefetch the copies of vertex `soon`, and where those of `later` are."""
    prefetch(RECORD, table.first, later)
    prefetch(RECORD, table.used, 2 * np.int64(later))
    if is_dense(table, soon):
        prefetch(LINE, table.bytes, table.first[soon])
    else:
        prefetch(RECORD, table.slots, table.first[soon])


@inline(_nrt=False)
def is_dense(table, v):
    """Whether v has a byte for each part, in order."""
    return 4 * np.int64(table.used[v, 1]) >= table.num_parts


@inline(_nrt=False)
def count_in(table, v, p):
    """Edges of v in part p."""
    begin = table.first[v]
    if is_dense(table, v):
        return np.int32(table.bytes[begin + p])
    for i in range(begin, begin + table.used[v, 0]):
        if table.slots[i] >> PART_SHIFT == p:
            return table.slots[i] & np.int32(COUNT_MASK)
    return np.int32(0)


@inline(_nrt=False)
def add_copy(table, v, p):
    """One more edge of v in part p; returns whether that made a new copy."""
    begin = table.first[v]
    if is_dense(table, v):
        count = table.bytes[begin + p]
        table.bytes[begin + p] = count + (count < MOST)
        table.used[v, 0] += count == 0
        return count == 0
    end = begin + table.used[v, 0]
    for i in range(begin, end):
        if table.slots[i] >> PART_SHIFT == p:
            table.slots[i] += 1
            return False
    table.slots[end] = (np.int32(p) << PART_SHIFT) + 1
    table.used[v, 0] += 1
    return True


@inline(_nrt=False)
def drop_copy(table, v, p):
    """One edge less of v in part p, which has one; returns whether that removed the copy."""
    begin = table.first[v]
    if is_dense(table, v):
        count = table.bytes[begin + p]
        table.bytes[begin + p] = count - (count < MOST)
        table.used[v, 0] -= count == 1
        return count == 1
    end = begin + table.used[v, 0]
    for i in range(begin, end):
        if table.slots[i] >> PART_SHIFT == p:
            table.slots[i] -= 1
            if table.slots[i] & COUNT_MASK:
                return False
            table.slots[i] = table.slots[end - 1]
            table.used[v, 0] -= 1
            return True
    return False


@inline(_nrt=False)
def count_shared(table, v, home, shared):
    """shared[p] += 1 for each part p that holds an edge of v; in part `home` (-1: none) one edge does not count."""
    begin = table.first[v]
    if is_dense(table, v):
        for p in range(table.num_parts):
            shared[p] += table.bytes[begin + p] > 0
        if home >= 0:
            shared[home] -= table.bytes[begin + home] == 1
        return
    for i in range(begin, begin + table.used[v, 0]):
        slot = table.slots[i]
        p = slot >> PART_SHIFT
        shared[p] += (slot & COUNT_MASK) > (p == home)
