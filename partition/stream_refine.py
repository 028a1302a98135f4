"""Single rows from part to part, for `cmr-stream`: as in `refine`, but one after the other, in the order of the rows.

Shapes: N vertices, M rows, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.jit import inline, kernel
from distgnn.partition.bits import has_bit, lowest_bit
from distgnn.partition.count_table import add, count_in, drop, first_count

LARGEST_COUNT = 255
LEAST_GAIN = 5e-3  # copies: a row that could save less is not looked at
FAR_CANDIDATES = 8
BETA = 2.0
EDGE_PRICE, OVERFULL_PRICE = 0.02, 4.0
AHEAD = 32  # rows whose heads are fetched before the first is judged
PIECE = 1 << 14  # rows between two looks at the prices


def marginals(s: float) -> np.ndarray:
    """float32: entry c + 1 is the price of one more row where there are c, if c of them cost c / (c + s)."""
    counts = np.arange(LARGEST_COUNT + 2, dtype=np.float64)
    marginal = np.diff(counts / np.maximum(counts + s, 1e-300), prepend=0.0).astype(np.float32)
    marginal[0] = 0.0
    return marginal


@inline
def _only(head, v, p):
    """Whether p is the only part of v."""
    good = True
    for w in range(head.shape[1] - 1):
        good &= head[v, w] == (uint64(1) << uint64(p & 63) if w == p >> 6 else uint64(0))
    return good


@inline
def _marginal(marginal, count):
    """Price of one more row where there are `count`."""
    return marginal[min(count, LARGEST_COUNT) + 1]


@kernel
def sweep_rows(low, high, parts, table, arcs, copies, shares, limit, weight, marginal):
    num_parts = shares.shape[0]
    steep, price = np.empty(num_parts, dtype=np.float32), np.empty(num_parts, dtype=np.float32)
    last = table.head.shape[1] - 1
    moves = 0
    touched = uint64(0)
    for start in range(0, low.shape[0], AHEAD):
        if start % PIECE == 0:
            _set_prices(arcs, copies, shares, limit, steep, price)
        stop = min(start + AHEAD, low.shape[0])
        for e in range(start, stop):  # fetch the heads, then the counts: so the cache misses overlap
            touched ^= table.head[low[e], last] ^ table.head[high[e], last]
        for e in range(start, stop):
            p = np.int64(parts[e])
            if not _only(table.head, high[e], p) or not _only(table.head, low[e], p):
                touched ^= first_count(table, low[e]) ^ first_count(table, high[e])
        for e in range(start, stop):
            u, v, p = np.int64(low[e]), np.int64(high[e]), np.int64(parts[e])
            over = arcs[p] > limit[p]
            if not over and _only(table.head, u, p) and _only(table.head, v, p):
                continue
            saved = marginal[min(count_in(table, u, p), LARGEST_COUNT + 1)]
            if u != v:
                saved += marginal[min(count_in(table, v, p), LARGEST_COUNT + 1)]
            if saved < LEAST_GAIN and not over:
                continue
            q = _best_part(table, u, v, p, steep[p] * saved + price[p], marginal, steep, price, arcs, limit, weight)
            if q >= 0:
                parts[e] = q
                _move(table, u, v, p, q, 1.0 if u == v else weight, arcs, copies)
                moves += 1
    return moves, touched  # so that the fetches are not left out


@kernel
def _set_prices(arcs, copies, shares, limit, steep, price):
    rows, total = copies.sum(), arcs.sum()
    for p in range(shares.shape[0]):
        steep[p] = np.exp(min(BETA * (copies[p] / (rows * shares[p]) - 1), 8.0))
        price[p] = EDGE_PRICE * (arcs[p] / (total * shares[p]) - 1) + OVERFULL_PRICE * (arcs[p] > limit[p])


@inline
def _best_part(table, u, v, p, released, marginal, steep, price, arcs, limit, weight):
    """The part with an end of row (u, v) where it costs least, if that is less than `released` in p; else -1."""
    best, lowest = -1, released - 1e-5
    head, words = table.head, table.head.shape[1] - 1
    alone = marginal[1]
    for w in range(words):
        word = head[u, w]
        while word != uint64(0):
            q = (w << 6) + lowest_bit(word)
            word &= word - uint64(1)
            if q == p or arcs[q] + weight > limit[q]:
                continue
            cost = _marginal(marginal, count_in(table, u, q))
            if u != v:
                cost += _marginal(marginal, count_in(table, v, q)) if has_bit(head, v, q) else alone
            cost = steep[q] * cost + price[q]
            if cost < lowest:
                best, lowest = q, cost
    tried = 0
    for step in range(words):  # from a word that differs from row to row: no part is preferred
        w = (step + u) % words
        word = head[v, w] & ~head[u, w]
        while word != uint64(0) and tried < FAR_CANDIDATES:
            q = (w << 6) + lowest_bit(word)
            word &= word - uint64(1)
            if q == p or arcs[q] + weight > limit[q]:
                continue
            tried += 1
            cost = steep[q] * (_marginal(marginal, count_in(table, v, q)) + alone) + price[q]
            if cost < lowest:
                best, lowest = q, cost
    return best


@inline
def _move(table, u, v, p, q, arcs_moved, arcs, copies):
    arcs[p] -= arcs_moved
    arcs[q] += arcs_moved
    copies[p] -= drop(table, u, p)  # before adding: a vertex has no more entries than rows
    copies[q] += add(table, u, q)
    if u != v:
        copies[p] -= drop(table, v, p)
        copies[q] += add(table, v, q)


@kernel
def shed_rows(low, high, parts, table, arcs, copies, limit, weight, new_copies):
    """Move rows of overfull parts to the least loaded part that needs at most this many new copies."""
    for e in range(low.shape[0]):
        p = np.int64(parts[e])
        if arcs[p] <= limit[p]:
            continue
        u, v = np.int64(low[e]), np.int64(high[e])
        best = -1
        for q in range(limit.shape[0]):
            if arcs[q] + weight > limit[q] or (best >= 0 and arcs[q] >= arcs[best]):
                continue
            if (not has_bit(table.head, u, q)) + (not has_bit(table.head, v, q)) <= new_copies:
                best = q
        if best >= 0:
            parts[e] = best
            _move(table, u, v, p, best, 1.0 if u == v else weight, arcs, copies)
