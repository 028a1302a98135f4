"""Whole clusters to parts, for `cmr-stream`: each where it adds least, new copies and a steep price on loads.

As the first step of merge.py, but the clusters are ranges of sorted rows and what they consist of is in no list.

Shapes: N vertices, M rows, K clusters, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.jit import kernel
from distgnn.partition.copy_table import AHEAD, add_copy, ask_for, count_shared, drop_copy
from distgnn.partition.group_moves import Loads, cost_in

FIRST_GUESS = 1.2  # copies per vertex before any are known
ROWS_AT_ONCE = 10**7  # between two reports of progress


def place_clusters(rows, parts: np.ndarray, begins: np.ndarray, table, loads: Loads, shares: np.ndarray, step) -> None:
    """Write the part of each row's cluster to `parts` [M] (-1: none yet); clusters are placed, or moved, in order.

    Args: rows: sorted `Rows`; begins: int64 [K + 1], the first vertex of each cluster; table, loads: of `parts`.
    """
    stamp = np.full(rows.num_nodes, -1, dtype=np.int32)
    cursor = np.zeros(2, dtype=np.int64)  # next row, its cluster
    guess = FIRST_GUESS * np.count_nonzero(table.used[:, 1])
    weight = 2.0 if rows.two_way else 1.0
    placed = len(parts) > 0 and parts[-1] >= 0
    shared = np.empty(len(shares), dtype=np.int32)
    while cursor[0] < len(parts):
        done = len(parts) if placed else max(int(cursor[0]), 1)
        loads.goal_rows[:] = max(0 if placed else guess, loads.rows.sum() * (len(parts) / done)) * shares
        until = min(len(parts), int(cursor[0]) + ROWS_AT_ONCE)
        _place(rows.src, rows.dst, parts, begins, weight, table, loads, stamp, shared, until, cursor)
        step(int(cursor[0]), len(parts))


@kernel(_nrt=False)
def _place(low, high, parts, begins, weight, table, loads, stamp, shared, until, cursor):
    """Place clusters until row `until` is done."""
    size, num_parts = low.shape[0], loads.arcs.shape[0]
    begin, c = cursor[0], cursor[1]
    mean_rows = loads.goal_rows.sum() / num_parts
    while begin < until:
        while begins[c + 1] <= low[begin]:
            c += 1
        shared[:] = 0
        old = parts[begin]
        end, held, load = begin, 0, 0.0
        while end < size and low[end] < begins[c + 1]:
            ask_for(table, high[min(end + AHEAD, size - 1)], high[min(end + 2 * AHEAD, size - 1)])
            load += 1.0 if low[end] == high[end] else weight
            if old >= 0:
                loads.rows[old] -= drop_copy(table, low[end], old)
                if low[end] != high[end]:
                    loads.rows[old] -= drop_copy(table, high[end], old)
            end += 1
        if old >= 0:
            loads.arcs[old] -= load
        for e in range(begin, end):
            for v in (low[e], high[e]):
                if stamp[v] != c:
                    stamp[v] = c
                    held += 1
                    count_shared(table, v, -1, shared)
        best, least = 0, np.inf
        for p in range(num_parts):
            cost = cost_in(p, load, held - shared[p], loads, mean_rows)
            if cost < least:
                best, least = p, cost
        loads.arcs[best] += load
        loads.rows[best] += held - shared[best]
        for e in range(begin, end):
            ask_for(table, high[min(e + AHEAD, size - 1)], high[min(e + 2 * AHEAD, size - 1)])
            parts[e] = best
            add_copy(table, low[e], best)
            if low[e] != high[e]:
                add_copy(table, high[e], best)
        begin = end
    cursor[0], cursor[1] = begin, c
