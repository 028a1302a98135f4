"""What an edge costs in each part, and where it would cost least.

The price of vertex v in part p, which computes c > 0 of its edges, is c / (c + s); one more edge costs
s / ((c + s) (c + s + 1)). A part's price for both ends is multiplied by its weight; its own price is added.

All parts of a dense vertex are priced in vector instructions: prices are positive, so their bits compare as integers.

Shapes: P parts.
Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline
from distgnn.partition.moves.replica_table import COUNT_MASK, PART_SHIFT, count_in, is_dense

SMALLEST_S = 1e-6  # stands for 0: a first edge costs 1, another one nothing to speak of
LEAST_SAVING = 1e-5  # copies: a move must save more


class Prices(NamedTuple):
    """s: float32; weight: float32 [P]; into, out_of: float32 [P], the price of an edge itself, above 0 (into: infinite
    if there is no room); least_weight, least_into: float32, the smallest of all parts."""

    s: np.float32
    weight: np.ndarray
    into: np.ndarray
    out_of: np.ndarray
    least_weight: np.float32
    least_into: np.float32


@inline(_nrt=False)
def one_more(s, count):
    """Price of one more edge where there are `count`."""
    have = np.float32(count) + s
    return s / (have * (have + np.float32(1.0)))


@inline(_nrt=False)
def price_in(table, u, v, q, prices):
    """Price of one more edge (u, v) in part q."""
    cost = one_more(prices.s, count_in(table, u, q))
    if u != v:
        cost += one_more(prices.s, count_in(table, v, q))
    return prices.weight[q] * cost + prices.out_of[q]


@inline(_nrt=False)
def price_of(table, u, v, p, prices):
    """Price of edge (u, v) in part p, where it is: what taking it out saves."""
    return now_and_at_best(table, u, v, p, prices)[0]


@inline(_nrt=False)
def now_and_at_best(table, u, v, p, prices):
    """Price of edge (u, v) in part p, where it is, and what it would cost where all other edges of its ends are."""
    count = count_in(table, u, p)
    saved = one_more(prices.s, count - 1)
    at_best = one_more(prices.s, table.used[u, 1] - count)
    if u != v:
        count = count_in(table, v, p)
        saved += one_more(prices.s, count - 1)
        at_best += one_more(prices.s, table.used[v, 1] - count)
    return prices.weight[p] * saved + prices.out_of[p], prices.least_weight * at_best + prices.least_into


@inline(_nrt=False)
def best_part(table, u, v, p, now, prices, costs, keys, beside):
    """The part where edge (u, v), which costs `now` in part p, costs least; -1 if nowhere less.

    Args: costs: float32 [P], room; keys: the same bytes as int32; beside: float32 [P], the price of a first edge.
    """
    if u == v or not (is_dense(table, u) or is_dense(table, v)):
        return _best_of_few(table, u, v, p, now, prices, beside)
    if is_dense(table, u) and is_dense(table, v):
        _price_both(table, table.first[u], table.first[v], p, prices, costs)
    elif is_dense(table, v):
        _price_one(table, table.first[v], u, p, prices, costs)
    else:
        _price_one(table, table.first[u], v, p, prices, costs)
    lowest = keys[0]
    for q in range(table.num_parts):
        lowest = min(lowest, keys[q])
    costs[p] = now - np.float32(LEAST_SAVING)
    if lowest >= keys[p]:
        return -1
    nobody = np.int32(table.num_parts)
    best = nobody
    for q in range(table.num_parts):  # no way out of the loop: it becomes vector instructions
        best = min(best, np.int32(q) if keys[q] == lowest else nobody)
    return np.int64(best)


@inline(_nrt=False)
def _price_both(table, a, b, p, prices, costs):
    """costs[q] for an edge of two dense vertices, whose slots begin at a and b; infinite for its own part p.

    Not by a write to costs[p] afterwards: the vectors that are read next would have to wait for it.
    """
    s, one = prices.s, np.float32(1.0)
    for q in range(table.num_parts):
        x, y = np.float32(table.bytes[a + q]) + s, np.float32(table.bytes[b + q]) + s
        xx, yy = x * (x + one), y * (y + one)
        cost = prices.weight[q] * (s * (xx + yy) / (xx * yy)) + prices.into[q]
        costs[q] = cost if q != p else np.float32(np.inf)


@inline(_nrt=False)
def _price_one(table, a, few, p, prices, costs):
    """The same for an edge of a dense vertex, whose slots begin at a, and a sparse one."""
    s, one = prices.s, np.float32(1.0)
    alone = one_more(s, 0)
    for q in range(table.num_parts):
        x = np.float32(table.bytes[a + q]) + s
        cost = prices.weight[q] * (s / (x * (x + one)) + alone) + prices.into[q]
        costs[q] = cost if q != p else np.float32(np.inf)
    begin = table.first[few]
    for i in range(begin, begin + table.used[few, 0]):
        slot = table.slots[i]
        q = slot >> PART_SHIFT
        costs[q] += prices.weight[q] * (one_more(s, slot & COUNT_MASK) - alone)


@inline(_nrt=False)
def _best_of_few(table, u, v, p, now, prices, beside):
    """`best_part` of an edge of two sparse vertices, in a part with a copy of one; or of a self-loop.

    On a tie the lowest part, as in `best_part`: slots have no order that a count of the same rows would restore.
    """
    s = prices.s
    alone = one_more(s, 0)
    best, lowest = -1, now - np.float32(LEAST_SAVING)
    if u == v:
        for q in range(table.num_parts):
            cost = prices.weight[q] * one_more(s, count_in(table, v, q)) + prices.into[q]
            if q != p and cost < lowest:
                best, lowest = q, cost
        return best
    begin, end = table.first[v], table.first[v] + table.used[v, 0]
    for i in range(begin, end):
        q = table.slots[i] >> PART_SHIFT
        beside[q] = one_more(s, table.slots[i] & COUNT_MASK)
        cost = prices.weight[q] * (beside[q] + alone) + prices.into[q]
        if q != p and (cost < lowest or (cost == lowest and q < best)):
            best, lowest = q, cost
    for i in range(table.first[u], table.first[u] + table.used[u, 0]):
        q = table.slots[i] >> PART_SHIFT
        cost = prices.weight[q] * (one_more(s, table.slots[i] & COUNT_MASK) + beside[q]) + prices.into[q]
        if q != p and (cost < lowest or (cost == lowest and q < best)):
            best, lowest = q, cost
    for i in range(begin, end):
        beside[table.slots[i] >> PART_SHIFT] = alone
    return best
