"""Whole clusters to parts, for `cmr-stream`: each where it adds least, new copies and a steep price on loads.

Shapes: N vertices, M rows, K clusters, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.jit import inline, kernel
from distgnn.partition.bits import lowest_bit
from distgnn.partition.count_table import add, drop, first_count

LOAD_PRICE = 0.3
FIRST_GUESS = 1.2  # copies per vertex before any are known
AHEAD = 32  # rows whose heads are fetched before the first is looked at


@inline
def _power(x):
    x2 = x * x
    x4 = x2 * x2
    return x4 * x4


@inline
def _cheapest(shared, held, load, total, arcs, copies, goal, shares):
    """The part where a cluster of so many arcs and vertices, shared[p] of which p has, adds least."""
    best, least = 0, np.inf
    for p in range(shares.shape[0]):
        new, fair = held - shared[p], total * shares[p]
        cost = new / (total / shares.shape[0])
        cost += LOAD_PRICE * (_power((arcs[p] + load) / goal[p]) - _power(arcs[p] / goal[p]))
        cost += LOAD_PRICE * (_power((copies[p] + new) / fair) - _power(copies[p] / fair))
        if cost < least:
            best, least = p, cost
    return best


@kernel
def place_clusters(low, high, parts, begins, weight, table, arcs, copies, goal, shares, num_vertices, stamp, cursor):
    """Place clusters until some ten million rows are done."""
    head, words, num_parts, size = table.head, table.head.shape[1] - 1, shares.shape[0], low.shape[0]
    shared = np.zeros(num_parts, dtype=np.int64)
    begin, c, moved = cursor
    touched = uint64(0)
    until = min(size, begin + 10_000_000)
    while begin < until:
        while begins[c + 1] <= low[begin]:
            c += 1
        old = np.int64(parts[begin])
        end, load = begin, 0.0
        while end < size and low[end] < begins[c + 1]:
            load += 1.0 if low[end] == high[end] else weight
            if old >= 0:
                copies[old] -= drop(table, low[end], old)
                if low[end] != high[end]:
                    copies[old] -= drop(table, high[end], old)
            end += 1
        if old >= 0:
            arcs[old] -= load
        shared[:] = 0
        held = 0
        for start in range(begin, end, AHEAD):
            stop = min(start + AHEAD, end)
            for e in range(start, stop):  # fetch what the next loop needs: so the cache misses overlap
                touched ^= head[high[e], words] ^ uint64(stamp[high[e]])
            for e in range(2 * start, 2 * stop):
                v = low[e >> 1] if e & 1 == 0 else high[e >> 1]
                if stamp[v] == c + 1:
                    continue
                stamp[v] = c + 1
                held += 1
                for w in range(words):
                    word = head[v, w]
                    while word != uint64(0):
                        shared[(w << 6) + lowest_bit(word)] += 1
                        word &= word - uint64(1)
        total = copies.sum() + held
        if old < 0:
            total = max(FIRST_GUESS * num_vertices, total * (size / end))
        best = _cheapest(shared, held, load, total, arcs, copies, goal, shares)
        moved += best != old
        arcs[best] += load
        for start in range(begin, end, AHEAD):
            stop = min(start + AHEAD, end)
            for e in range(start, stop):
                touched ^= first_count(table, high[e])
            for e in range(start, stop):
                parts[e] = best
                copies[best] += add(table, low[e], best)
                if low[e] != high[e]:
                    copies[best] += add(table, high[e], best)
        begin = end
    cursor[0], cursor[1], cursor[2] = begin, c, moved
    return touched
