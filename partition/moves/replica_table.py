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
from numba import uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import own_ranges, run
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch

PART_SHIFT = 15
COUNT_MASK = (1 << PART_SHIFT) - 1
MOST = 255
BLOCK_ROWS = 1 << 11  # of which a thread first finds its own ends
AHEAD = 16  # edges between asking for a vertex's copies and looking at them
WORD = Tile(lanes=1, offsets=(0,), heads=(0,))
LINE_BYTES = 64
LINE = Tile(lanes=32, offsets=(0,), heads=(0,))


class CopyTable(NamedTuple):
    """first: int64 [N], where the copies of a vertex begin in `bytes` (dense) or `slots` (sparse); used: int32 [N, 2],
    its copies and its degree (both are columns of one array); bytes: uint8; slots: int32."""

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
    known = np.zeros((len(degrees), 4), dtype=np.int32)  # what is known of a vertex lies in one line of the cache
    first, used = known.view(np.int64)[:, 0], known[:, 2:]
    num_bytes, num_slots = _lay_out(degrees, num_parts, first, used)
    counts = np.zeros(num_bytes + LINE_BYTES, dtype=np.uint8)
    counts = counts[-counts.ctypes.data % LINE_BYTES :][:num_bytes]  # 32 parts or 64: no vertex in two lines
    return CopyTable(first, used, counts, np.zeros(num_slots, dtype=np.int32), num_parts)


@kernel
def _lay_out(degrees, num_parts, first, used):
    """Where each vertex's copies begin; returns how many bytes and slots there are."""
    num_bytes = num_slots = 0
    for v in range(degrees.shape[0]):
        degree = np.int64(degrees[v])
        used[v, 1] = degree
        if 4 * degree >= num_parts:
            first[v] = num_bytes
            num_bytes += num_parts
        else:
            first[v] = num_slots
            num_slots += degree
    return num_bytes, num_slots


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


@kernel
def _add_rows(low, high, src, dst, edge_part, table):
    """Count at the vertices from low to high."""
    if high - low == table.used.shape[0]:
        _add_all(src, dst, edge_part, table)
        return
    own = np.empty((2 * BLOCK_ROWS, 2), dtype=np.int64)
    for first in range(0, src.shape[0], BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, src.shape[0])
        _add_own(own, _own_ends(low, high, first, last, src, dst, own), edge_part, table)


@inline(_nrt=False)
def _add_all(src, dst, edge_part, table):
    last = src.shape[0] - 1
    for e in range(last + 1):
        ask_for(table, dst[min(e + AHEAD, last)], dst[min(e + 2 * AHEAD, last)])
        add_copy(table, src[e], edge_part[e])
        if dst[e] != src[e]:
            add_copy(table, dst[e], edge_part[e])


@inline(_nrt=False)
def _own_ends(low, high, first, last, src, dst, own):
    """own[i] = (vertex, row) of the ends of rows first to last that are vertices from low to high; returns how many.

    A self-loop is there once. No branch: whose vertex an end is cannot be guessed.
    """
    width, found = uint64(high - low), 0
    for e in range(first, last):
        u, v = np.int64(src[e]), np.int64(dst[e])
        own[found, 0], own[found, 1] = u, e
        found += uint64(u - low) < width
        own[found, 0], own[found, 1] = v, e
        found += (uint64(v - low) < width) & (u != v)
    return found


@inline(_nrt=False)
def _add_own(own, size, edge_part, table):
    for i in range(size):
        ask_for(table, own[min(i + AHEAD, size - 1), 0], own[min(i + 2 * AHEAD, size - 1), 0])
        add_copy(table, own[i, 0], edge_part[own[i, 1]])


@kernel
def full_counts(table):
    """Where `bytes` are full, int64, ascending: all that a table knows and a count of the same rows may not."""
    found = 0
    for i in range(table.bytes.shape[0]):
        found += table.bytes[i] == MOST
    places = np.empty(found, dtype=np.int64)
    found = 0
    for i in range(table.bytes.shape[0]):
        if table.bytes[i] == MOST:
            places[found] = i
            found += 1
    return places


def fill_counts(table: CopyTable, places) -> None:
    """Make these `bytes` full again, in a table that was counted anew."""
    if len(places):
        _fill_counts(table, np.asarray(places))


@kernel(_nrt=False)
def _fill_counts(table, places):
    next_one = 0
    for v in range(table.used.shape[0]):
        if is_dense(table, v):
            while next_one < places.shape[0] and places[next_one] < table.first[v] + table.num_parts:
                table.used[v, 0] += table.bytes[places[next_one]] == 0
                table.bytes[places[next_one]] = MOST
                next_one += 1


@inline(_nrt=False)
def ask_for(table, soon, later):
    """Prefetch the copies of vertex `soon`, and where those of `later` are."""
    prefetch(WORD, table.used, 4 * np.int64(later))
    if is_dense(table, soon):
        prefetch(LINE, table.bytes, table.first[soon])
    else:
        prefetch(WORD, table.slots, table.first[soon])


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
def add_copies(table, v, p, more):
    """So many more edges of v in part p."""
    begin = table.first[v]
    if is_dense(table, v):
        count = np.int32(table.bytes[begin + p])
        table.bytes[begin + p] = min(count + more, np.int32(MOST))
        table.used[v, 0] += count == 0
        return
    end = begin + table.used[v, 0]
    for i in range(begin, end):
        if table.slots[i] >> PART_SHIFT == p:
            table.slots[i] += more
            return
    table.slots[end] = (np.int32(p) << PART_SHIFT) + more
    table.used[v, 0] += 1


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
