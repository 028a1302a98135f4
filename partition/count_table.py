"""CountTable: how many rows each vertex has in each part, in two to four bytes for each (vertex, part).

A vertex's head holds the set of its parts as bits and says where its counts lie: one look tells where the vertex is.
A vertex of fewer rows than parts has an entry for each part it is in, part and count in one number, in no order; one of
more rows has a count for every part.

Shapes: N vertices, P parts, W words of a set, Z entries (rows of vertices with fewer than P), D vertices with more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64

from distgnn.kernels.jit import inline, kernel
from distgnn.partition.bits import has_bit

SMALL = 256  # parts up to which part and count share 16 bits


class CountTable(NamedTuple):
    """head: uint64 [N, W + 1]; entry: uint16 or uint32 [Z], part << shift | count; count: int32 [D * P].

    The last word of a head: bit 63 says that there is a count for every part, bits 16 to 62 are the first entry or
    count, the rest the number of entries in use.
    """

    head: np.ndarray
    entry: np.ndarray
    count: np.ndarray
    shift: int
    num_parts: int


def table_bytes(degrees: np.ndarray, num_parts: int) -> int:
    """Memory of the table of vertices with so many rows [N]."""
    few = degrees < num_parts
    entries = int(degrees.sum(where=few, dtype=np.int64)) * (2 if num_parts <= SMALL else 4)
    return 8 * len(degrees) * (1 + (num_parts + 63) // 64) + entries + 4 * num_parts * int(np.count_nonzero(~few))


def empty_table(degrees: np.ndarray, num_parts: int) -> CountTable:
    """A table without any copy, for vertices with at most so many rows [N]."""
    few = degrees < num_parts
    size = int(degrees.sum(where=few, dtype=np.int64))
    dense = len(degrees) - int(np.count_nonzero(few))
    narrow = num_parts <= SMALL
    head = np.zeros((len(degrees), (num_parts + 63) // 64 + 1), dtype=np.uint64)
    entry = np.zeros(size, dtype=np.uint16 if narrow else np.uint32)
    table = CountTable(head, entry, np.zeros(dense * num_parts, dtype=np.int32), 8 if narrow else 16, num_parts)
    _lay_out(degrees, table)
    return table


@kernel
def _lay_out(degrees, table):
    last = table.head.shape[1] - 1
    entries, counts = uint64(0), uint64(0)
    for v in range(degrees.shape[0]):
        if degrees[v] < table.num_parts:
            table.head[v, last] = entries << uint64(16)
            entries += uint64(degrees[v])
        else:
            table.head[v, last] = uint64(0x8000000000000000) | counts << uint64(16)
            counts += uint64(table.num_parts)


@kernel
def fill(low, high, parts, weight, table, arcs):
    """Count rows (low, high) in their parts (-1: none), a self-loop once; arcs[p] += weight (of a self-loop 1)."""
    for e in range(low.shape[0]):
        p = np.int64(parts[e])
        if p < 0:
            continue
        add(table, low[e], p)
        if high[e] != low[e]:
            add(table, high[e], p)
        arcs[p] += 1.0 if high[e] == low[e] else weight


@kernel
def set_sizes(head, sizes):
    """sizes[p] += vertices in part p."""
    for v in range(head.shape[0]):
        for p in range(sizes.shape[0]):
            sizes[p] += has_bit(head, v, p)


@inline
def where(table, v):
    """(first entry or count, entries in use, whether there is a count for every part)."""
    word = table.head[v, table.head.shape[1] - 1]
    return (
        np.int64((word & uint64(0x7FFFFFFFFFFFFFFF)) >> uint64(16)),
        np.int64(word & uint64(0xFFFF)),
        word >> uint64(63) != uint64(0),
    )


@inline
def count_in(table, v, p):
    """Rows of v in part p."""
    first, used, dense = where(table, v)
    if dense:
        return np.int64(table.count[first + p])
    for i in range(first, first + used):
        if np.int64(table.entry[i]) >> table.shift == p:
            return np.int64(table.entry[i]) & ((1 << table.shift) - 1)
    return np.int64(0)


@inline
def add(table, v, p):
    """One more row of v in part p; returns whether that made a new copy."""
    first, used, dense = where(table, v)
    if dense:
        table.count[first + p] += 1
        new = table.count[first + p] == 1
    else:
        new = True
        for i in range(first, first + used):
            if np.int64(table.entry[i]) >> table.shift == p:
                table.entry[i] += 1
                new = False
                break
        if new:
            table.entry[first + used] = (np.int64(p) << table.shift) | 1
            table.head[v, table.head.shape[1] - 1] += uint64(1)
    if new:
        table.head[v, p >> 6] |= uint64(1) << uint64(p & 63)
    return new


@inline
def drop(table, v, p):
    """One row less of v in part p, which has one; returns whether that removed the copy."""
    first, used, dense = where(table, v)
    gone = False
    if dense:
        table.count[first + p] -= 1
        gone = table.count[first + p] == 0
    else:
        for i in range(first, first + used):
            if np.int64(table.entry[i]) >> table.shift == p:
                if np.int64(table.entry[i]) & ((1 << table.shift) - 1) > 1:
                    table.entry[i] -= 1
                else:
                    gone = True
                    table.entry[i] = table.entry[first + used - 1]
                    table.head[v, table.head.shape[1] - 1] -= uint64(1)
                break
    if gone:
        table.head[v, p >> 6] &= ~(uint64(1) << uint64(p & 63))
    return gone


@inline
def first_count(table, v):
    """Some count of v: to fetch its line."""
    first, _, dense = where(table, v)
    return uint64(table.count[first]) if dense else uint64(table.entry[first])
