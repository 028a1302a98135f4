"""What an edge costs in each part, and the part where it costs least.

The price of vertex v in part p, where it has c > 0 edges, is c / (c + s). So one edge more there costs the difference
of two such prices, s / ((c + s) (c + s + 1)): with s = 2 it is 1/3 where v has no edge yet, 1/6 where it has one, 1/10
where it has two. An edge (u, v) in part p costs

    weight[p] * (one more edge of u + one more edge of v) + price of the edge itself in p

All parts of a dense vertex are priced in one loop without a branch, which the compiler turns into vector instructions.

Shapes: P parts.
Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline
from distgnn.partition.moves.replica_table import (
    COPIES,
    COUNT_MASK,
    DEGREE,
    PART_SHIFT,
    is_dense,
    num_edges_in,
)

SMALLEST_S = 1e-6  # stands for 0: a first edge costs 1, each further one next to nothing
LEAST_SAVING = 1e-5  # copies: a move must save more, or rounding could send an edge back and forth


class Prices(NamedTuple):
    """s: float32; weight: float32 [P]; into, out_of: float32 [P], the price of an edge itself, above 0 (into: infinite
    if the part is full); least_weight, least_into: float32, the smallest of all parts."""

    s: np.float32
    weight: np.ndarray
    into: np.ndarray
    out_of: np.ndarray
    least_weight: np.float32
    least_into: np.float32


def prices_of(s: float, weight: np.ndarray, price: np.ndarray, full: np.ndarray) -> Prices:
    """Prices in float32: weight of a copy, price of an edge (above 0) and whether it is full, of each part [P]."""
    into = np.where(full, np.inf, price)
    # In float32 a vector holds twice as many parts, and the bits of a cost fit an int32, see `best_part`.
    single = np.array([max(s, SMALLEST_S), weight.min(), into.min()], dtype=np.float32)
    weight, into, price = (values.astype(np.float32) for values in (weight, into, price))
    return Prices(single[0], weight, into, price, single[1], single[2])


@inline(_nrt=False)
def price_of_one_more(s, count):
    """Price of one more edge of a vertex where it has `count`."""
    have = np.float32(count) + s
    return s / (have * (have + np.float32(1.0)))


@inline(_nrt=False)
def price_in(table, u, v, q, prices):
    """Price of one more edge (u, v) in part q."""
    # A self-loop has one end: its vertex is charged once.
    cost = price_of_one_more(prices.s, num_edges_in(table, u, q))
    if u != v:
        cost += price_of_one_more(prices.s, num_edges_in(table, v, q))
    return prices.weight[q] * cost + prices.out_of[q]


@inline(_nrt=False)
def price_of(table, u, v, p, prices):
    """Price of edge (u, v) in part p, where it is: what taking it out saves."""
    return price_and_bound(table, u, v, p, prices)[0]


@inline(_nrt=False)
def price_and_bound(table, u, v, p, prices):
    """Price of edge (u, v) in part p, where it is, and a lower bound on its price in every other part.

    No part can have more than all other edges of u and v, nor smaller prices than the smallest ones: an edge whose
    bound saves nothing stays, and no other part is looked at.
    """
    count = num_edges_in(table, u, p)
    saved = price_of_one_more(prices.s, count - 1)
    bound = price_of_one_more(prices.s, table.vertex[u, DEGREE] - count)
    if u != v:
        count = num_edges_in(table, v, p)
        saved += price_of_one_more(prices.s, count - 1)
        bound += price_of_one_more(prices.s, table.vertex[v, DEGREE] - count)
    return prices.weight[p] * saved + prices.out_of[p], prices.least_weight * bound + prices.least_into


# Plain: best = argmin(costs over the parts q != p), if costs[best] < now - LEAST_SAVING, else -1.
#
# That is one compare and one jump for each part. Instead two loops without a jump, each of which becomes vector
# instructions: the lowest cost, then the first part that has it. Costs are positive, and the bits of positive floats,
# read as integers, are in the order of the floats: `keys`, a view of the bytes of `costs`, is what is compared, because
# the minimum of integers is one instruction while that of floats must see to NaN.
@inline(_nrt=False)
def best_part(table, u, v, p, now, prices, costs, keys, beside):
    """The part where edge (u, v), which costs `now` in part p, costs least; -1 if it saves nothing anywhere.

    Args: costs: float32 [P], scratch; keys: the same bytes as int32; beside: float32 [P], all of them the price of a
        first edge, before and after.
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
    # p's own place, infinite so far and thus never the lowest, takes what must be undercut: `keys[p]` are its bits.
    costs[p] = now - np.float32(LEAST_SAVING)
    if lowest >= keys[p]:
        return -1
    nobody = np.int32(table.num_parts)
    best = nobody
    for q in range(table.num_parts):  # without `break`: the loop becomes vector instructions
        best = min(best, np.int32(q) if keys[q] == lowest else nobody)
    return np.int64(best)


@inline(_nrt=False)
def _price_both(table, a, b, p, prices, costs):
    """costs[q] for an edge of two dense vertices, whose counts begin at a and b; infinite for its own part p."""
    s, one = prices.s, np.float32(1.0)
    for q in range(table.num_parts):
        x, y = np.float32(table.counts[a + q]) + s, np.float32(table.counts[b + q]) + s
        # s / xx + s / yy with one division instead of two
        xx, yy = x * (x + one), y * (y + one)
        cost = prices.weight[q] * (s * (xx + yy) / (xx * yy)) + prices.into[q]
        # Not by writing costs[p] after the loop: the vectors that are read next would have to wait for that write.
        costs[q] = cost if q != p else np.float32(np.inf)


@inline(_nrt=False)
def _price_one(table, a, few, p, prices, costs):
    """costs[q] for an edge of a dense vertex, whose counts begin at a, and a sparse one; infinite for part p."""
    s, one = prices.s, np.float32(1.0)
    alone = price_of_one_more(s, 0)
    # First as if the sparse vertex had no copy anywhere, in vector instructions; then its few copies are put right.
    for q in range(table.num_parts):
        x = np.float32(table.counts[a + q]) + s
        cost = prices.weight[q] * (s / (x * (x + one)) + alone) + prices.into[q]
        costs[q] = cost if q != p else np.float32(np.inf)
    begin = table.first[few]
    for i in range(begin, begin + table.vertex[few, COPIES]):
        slot = table.slots[i]
        q = slot >> PART_SHIFT
        costs[q] += prices.weight[q] * (price_of_one_more(s, slot & COUNT_MASK) - alone)


@inline(_nrt=False)
def _best_of_few(table, u, v, p, now, prices, beside):
    """`best_part` of an edge of two sparse vertices, in a part with a copy of one; or of a self-loop.

    On a tie the lowest part, as in `best_part`: the order of slots is not what counting the same edges anew would give.
    """
    s = prices.s
    alone = price_of_one_more(s, 0)
    best, lowest = -1, now - np.float32(LEAST_SAVING)
    if u == v:
        for q in range(table.num_parts):
            cost = prices.weight[q] * price_of_one_more(s, num_edges_in(table, v, q)) + prices.into[q]
            if q != p and cost < lowest:
                best, lowest = q, cost
        return best
    # beside[q] = what v costs in part q, for the copies of v only; then the copies of u read it, and it is put back.
    begin, end = table.first[v], table.first[v] + table.vertex[v, COPIES]
    for i in range(begin, end):
        q = table.slots[i] >> PART_SHIFT
        beside[q] = price_of_one_more(s, table.slots[i] & COUNT_MASK)
        cost = prices.weight[q] * (beside[q] + alone) + prices.into[q]
        if q != p and (cost < lowest or (cost == lowest and q < best)):
            best, lowest = q, cost
    for i in range(table.first[u], table.first[u] + table.vertex[u, COPIES]):
        q = table.slots[i] >> PART_SHIFT
        cost = prices.weight[q] * (price_of_one_more(s, table.slots[i] & COUNT_MASK) + beside[q]) + prices.into[q]
        if q != p and (cost < lowest or (cost == lowest and q < best)):
            best, lowest = q, cost
    for i in range(begin, end):
        beside[table.slots[i] >> PART_SHIFT] = alone
    return best
