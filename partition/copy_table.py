"""Sparse copy table: for each vertex the parts that hold it and how many of its edges each holds.

A vertex has min(P, degree) slots, so it never runs out; used slots are a prefix, in no particular order. A dense table
would need N x P counts.

Shapes: N vertices, P parts, Z slots of all vertices together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.jit import inline, kernel


class CopyTable(NamedTuple):
    """first: int64 [N + 1], first slot; used: int32 [N], slots in use; part: int16 [Z]; count: int32 [Z]."""

    first: np.ndarray
    used: np.ndarray
    part: np.ndarray
    count: np.ndarray


def empty_table(degrees: np.ndarray, num_parts: int) -> CopyTable:
    """A table without any copy, with room for all that edges of these degrees [N] can make."""
    first = np.zeros(len(degrees) + 1, dtype=np.int64)
    np.cumsum(np.minimum(degrees, num_parts), out=first[1:])
    size = int(first[-1])
    used = np.zeros(len(degrees), dtype=np.int32)
    return CopyTable(first, used, np.empty(size, dtype=np.int16), np.empty(size, dtype=np.int32))


def table_of(edge_list, edge_part: np.ndarray, degrees: np.ndarray, num_parts: int) -> CopyTable:
    """The table of a cut whose rows keep both arcs together; a self-loop counts once."""
    table = empty_table(degrees, num_parts)
    _fill(edge_list.src, edge_list.dst, edge_part, table)
    return table


@kernel
def _fill(src, dst, edge_part, table):
    for e in range(src.shape[0]):
        add_copy(table, src[e], edge_part[e])
        if dst[e] != src[e]:
            add_copy(table, dst[e], edge_part[e])


@inline
def count_in(table, v, p):
    """Edges of v in part p."""
    begin = table.first[v]
    for i in range(begin, begin + table.used[v]):
        if table.part[i] == p:
            return table.count[i]
    return 0


@inline
def add_copy(table, v, p):
    """One more edge of v in part p; returns whether that made a new copy."""
    begin = table.first[v]
    end = begin + table.used[v]
    for i in range(begin, end):
        if table.part[i] == p:
            table.count[i] += 1
            return False
    table.part[end] = p
    table.count[end] = 1
    table.used[v] += 1
    return True


@inline
def drop_copy(table, v, p):
    """One edge less of v in part p, which has one; returns whether that removed the copy."""
    begin = table.first[v]
    end = begin + table.used[v]
    for i in range(begin, end):
        if table.part[i] == p:
            table.count[i] -= 1
            if table.count[i] > 0:
                return False
            table.part[i] = table.part[end - 1]
            table.count[i] = table.count[end - 1]
            table.used[v] -= 1
            return True
    return False
