"""CopyTable: how many edges each vertex has in each part, with room only for what can be.

A vertex of fewer edges than parts has a slot for each edge: its used slots come first, in no order. A vertex of more
edges has one slot for each part, in order, so that its count in a part is found at once; a count of 0 is no copy.

Shapes: N vertices, P parts, Z slots (the sum of min(edges of v, P)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.jit import inline, kernel


class CopyTable(NamedTuple):
    """first: int64 [N + 1], a vertex's slots; used: int32 [N], its copies; part: int16 [Z]; count: int32 [Z]."""

    first: np.ndarray
    used: np.ndarray
    part: np.ndarray
    count: np.ndarray
    num_parts: int


def empty_table(degrees: np.ndarray, num_parts: int) -> CopyTable:
    """A table without any copy, with room for all that edges of these degrees [N] can make."""
    first = np.zeros(len(degrees) + 1, dtype=np.int64)
    np.cumsum(np.minimum(degrees, num_parts), out=first[1:])
    size = int(first[-1])
    used = np.zeros(len(degrees), dtype=np.int32)
    table = CopyTable(first, used, np.empty(size, dtype=np.int16), np.zeros(size, dtype=np.int32), num_parts)
    _number_slots(table)
    return table


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


@kernel
def _number_slots(table):
    for v in range(table.used.shape[0]):
        begin = table.first[v]
        for slot in range(begin, table.first[v + 1]):
            table.part[slot] = slot - begin


@inline
def is_dense(table, v):
    """Whether v has a slot for each part, in order."""
    return table.first[v + 1] - table.first[v] == table.num_parts


@inline
def last_slot(table, v):
    """End of the slots of v that may hold a copy; those with a count of 0 do not."""
    return table.first[v + 1] if is_dense(table, v) else table.first[v] + table.used[v]


@inline
def count_in(table, v, p):
    """Edges of v in part p."""
    begin = table.first[v]
    if is_dense(table, v):
        return table.count[begin + p]
    for i in range(begin, begin + table.used[v]):
        if table.part[i] == p:
            return table.count[i]
    return 0


@inline
def add_copy(table, v, p):
    """One more edge of v in part p; returns whether that made a new copy."""
    begin = table.first[v]
    if is_dense(table, v):
        table.count[begin + p] += 1
        new = table.count[begin + p] == 1
        table.used[v] += new
        return new
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
    if is_dense(table, v):
        table.count[begin + p] -= 1
        gone = table.count[begin + p] == 0
        table.used[v] -= gone
        return gone
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
