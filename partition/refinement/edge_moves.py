"""Refinement: move single edges to a part where one of their ends already is, if that makes copies fewer.

The price of vertex v in part p, where it has c > 0 edges, is c / (c + s): one edge more there costs s / ((c + s) (c + s
+ 1)). With a large s a vertex pays less where its edges are many: they concentrate. s falls to 0, where every copy
costs 1. A part's prices are multiplied by exp(beta * (copies / share - 1)), so full parts let go; no part exceeds a
hard limit of arcs. An edge (u, v) in part p costs

    weight[p] * (one more edge of u + one more edge of v) + price of the edge itself in p

A sweep visits all edges once, in blocks:

1. *Freeze*: prices are computed from the loads of all parts.
2. *Propose*, all threads: each edge is priced in all parts against the frozen table. Each thread writes its own list of
   proposals and nothing else.
3. *Commit*, one thread, in the order of the edges: every proposal is priced again, with the moves before it made. Of
   e1 = (a, b) and e2 = (a, c) in part 0, both of which want to go where b and c are, the second one also saves the copy
   of a once the first is gone.

So the result does not depend on the number of threads. A block takes edges from all over the list (`STRETCHES` runs of
consecutive edges), because neighbours in the list share vertices: evaluated against the same frozen state, they would
all decide alike.

Shapes: M edges, P parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run, thread_chunks
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import WORD, Edges
from distgnn.partition.core.vertex_cut import MOST_ARCS
from distgnn.partition.refinement.cut_state import State, arc_limit, move_edge, rebalance, start_state
from distgnn.partition.refinement.replica_table import (
    AHEAD,
    COPIES,
    COUNT_MASK,
    DEGREE,
    PART_SHIFT,
    CopyTable,
    is_dense,
    num_edges_in,
    prefetch_copies,
)

BLOCKS = 100  # a block is a hundredth of the edges
FEW_EDGES = 4000  # for a call: with fewer, the cost of the call itself counts
MOST_CHUNKS = 16  # of a block for each thread, so that none waits long for the last
STRETCHES = 64  # runs of consecutive edges in a block
BETA = 2.0  # how strongly parts with many copies raise their prices
SCHEDULE = (2.0, 0.5, 0.1, 0.0, 0.0)  # values of s, one sweep over all edges each
LEAST_GAIN = 1e-3  # copies: an edge that could save less is not looked at
COMMIT_AHEAD = 8  # proposals between asking for the copies of an edge's ends and looking at them
# In copies: EDGE_PRICE tips what is about equal towards parts with few arcs; OVERFULL_PRICE is more than the two copies
# that an edge can need in a part of mean load.
EDGE_PRICE = 0.02
OVERFULL_PRICE = 4.0
STEEPEST = 8.0  # exponent of a part's price: one edge on thousands of parts must not overflow

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


@inline(counted=False)
def price_of_one_more(s, count):
    """Price of one more edge of a vertex where it has `count`."""
    have = np.float32(count) + s
    return s / (have * (have + np.float32(1.0)))


@inline(counted=False)
def price_in(table, u, v, q, prices):
    """Price of one more edge (u, v) in part q."""
    # A self-loop has one end: its vertex is charged once.
    cost = price_of_one_more(prices.s, num_edges_in(table, u, q))
    if u != v:
        cost += price_of_one_more(prices.s, num_edges_in(table, v, q))
    return prices.weight[q] * cost + prices.out_of[q]


@inline(counted=False)
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
# the minimum of integers is one instruction; the minimum of floats must see to NaN.
@inline(counted=False)
def best_part(table, u, v, p, now, prices, costs, keys, beside):
    """The part where edge (u, v), which costs `now` in part p, costs least; -1 if it saves nothing anywhere.

    costs: float32 [P], scratch; keys: its bytes as int32; beside: float32 [P], the price of a first edge before and
    after.
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


@inline(counted=False)
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


@inline(counted=False)
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


@inline(counted=False)
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


class Stretches(NamedTuple):
    """The stretches of a block, and the proposals for their edges.

    begins, ends: int64 [stretches], edges. Of each proposal, offset: int32, its edge after `begins`, and part: int16,
    the better part; a stretch's edges lie from the number of edges in the stretches before it on, so that threads
    write to places of their own. found: int64 [stretches], how many proposals.
    """

    begins: np.ndarray
    ends: np.ndarray
    offset: np.ndarray
    part: np.ndarray
    found: np.ndarray


def refine(
    edge_list: Edges,
    edge_part: np.ndarray,
    shares: np.ndarray,
    degrees: np.ndarray | None = None,
    table: CopyTable | None = None,
) -> np.ndarray:
    """Part [M] int16 with fewer copies at balanced parts.

    Args: degrees, table: of this cut, where they are known.
    """
    num_parts = len(shares)
    if num_parts == 1 or len(edge_part) == 0:
        return np.asarray(edge_part, dtype=np.int16)
    state = start_state(edge_list, np.array(edge_part, dtype=np.int16), num_parts, degrees, table)
    limit = arc_limit(edge_list, shares, MOST_ARCS)
    for s in SCHEDULE:
        sweep(edge_list, state, limit, BETA, s, shares)
    rebalance(edge_list, state, limit)
    return state.edge_part


def sweep(
    edge_list: Edges,
    state: State,
    limit: np.ndarray,
    beta: float,
    s: float,
    shares: np.ndarray,
    step: Callable[[int, int], None] | None = None,
) -> int:
    """Visit every edge once at one s; returns the number of moves."""
    num_edges = len(state.edge_part)
    blocks = min(BLOCKS, max(1, num_edges // 64))
    # [stretches, blocks + 1]: block b takes edges bounds[i, b] to bounds[i, b + 1] of every stretch i.
    stretches = min(STRETCHES, max(1, num_edges // (4 * blocks)))
    starts = num_edges * np.arange(stretches + 1, dtype=np.int64) // stretches
    bounds = starts[:-1, None] + (np.diff(starts)[:, None] * np.arange(blocks + 1, dtype=np.int64)) // blocks
    # Room for the proposals of the largest block: every block uses it again.
    largest = int(np.diff(bounds, axis=1).sum(axis=0).max(initial=0))
    proposals = (
        np.empty(largest, dtype=np.int32),
        np.empty(largest, dtype=np.int16),
        np.empty(len(bounds), dtype=np.int64),
    )
    arcs = 2.0 if edge_list.two_way else 1.0
    each = min(MOST_CHUNKS, largest // (FEW_EDGES * get_num_threads()))
    chunks = thread_chunks(len(bounds), each) if each else [0, len(bounds)]
    moves = 0
    for block in range(blocks):
        taken = Stretches(bounds[:, block].copy(), bounds[:, block + 1].copy(), *proposals)
        # Of the loads that the block before has left; frozen until this one is through.
        # Prices at these loads. An edge's own are raised by 1, so that none is negative
        copies = state.num_copies
        # 1 for a part that has its share of the copies.
        weight = np.exp(np.minimum(beta * (copies / (copies.sum() * shares) - 1), STEEPEST))
        price = 1 + EDGE_PRICE * (state.arcs / (state.arcs.sum() * shares) - 1) + OVERFULL_PRICE * (state.arcs > limit)
        into = np.where(state.arcs + arcs > limit, np.inf, price)
        # In float32 a vector holds twice as many parts, and the bits of a cost fit an int32, see `best_part`.
        single = np.array([max(s, SMALLEST_S), weight.min(), into.min()], dtype=np.float32)
        weight, into, price = (values.astype(np.float32) for values in (weight, into, price))
        prices = Prices(single[0], weight, into, price, single[1], single[2])
        args = (taken, edge_list.src, edge_list.dst, state, prices, arcs, limit)
        run(_propose, chunks, *args)
        moves += _commit(*args)
        if step is not None:
            step(block + 1, blocks)
    return moves


@kernel
def _propose(start, stop, stretches, src, dst, state, prices, arcs, limit):
    """Proposals for the edges of the stretches from start to stop."""
    costs = np.empty(limit.shape[0], dtype=np.float32)
    beside = np.full(limit.shape[0], price_of_one_more(prices.s, 0), dtype=np.float32)
    scratch = (costs, costs.view(np.int32), beside)
    _propose_each(start, stop, stretches, src, dst, state, prices, limit, scratch)


# Plain, for each edge of the stretches: q = the part where it costs least; propose q if that saves something.
# Two tests come first, because most edges stay where they are: both ends have no other copy and the part is not over
# its limit (nothing to save), and the bound of `price_and_bound`.
@inline(counted=False)
def _propose_each(start, stop, stretches, src, dst, state, prices, limit, scratch):
    table = state.table
    place = 0
    for i in range(start):
        place += stretches.ends[i] - stretches.begins[i]
    for i in range(start, stop):
        begin, end = stretches.begins[i], stretches.ends[i]
        found = place
        for e in range(begin, end):
            prefetch_copies(table, dst[min(e + AHEAD, end - 1)], dst[min(e + 2 * AHEAD, end - 1)])
            u, v, p = src[e], dst[e], state.edge_part[e]
            if table.vertex[u, COPIES] == 1 and table.vertex[v, COPIES] == 1 and state.arcs[p] <= limit[p]:
                continue
            now, bound = price_and_bound(table, u, v, p, prices)
            # `now` without the price of the edge itself is all that its two ends could save.
            if now >= prices.out_of[p] + LEAST_GAIN and now - bound > LEAST_SAVING:
                q = best_part(table, u, v, p, now, prices, *scratch)
                if q >= 0:
                    stretches.offset[found], stretches.part[found] = e - begin, q
                    found += 1
        stretches.found[i] = found - place
        place += end - begin


# Proposals are lists instead of one wanted part for each edge, so that the edges that will be moved next are known and
# what they need can be asked for: 0.56 s of a sweep became 0.22 (docs/internals/cmr.md). It comes in three steps, each
# of which needs the one before: the ends of the edge, the record of an end, its counts.
@kernel(counted=False)
def _commit(stretches, src, dst, state, prices, arcs, limit):
    """Make the proposed moves that still pay, in order; returns how many."""
    table = state.table
    moves = place = 0
    for i in range(stretches.begins.shape[0]):
        begin, last = stretches.begins[i], place + stretches.found[i] - 1
        for j in range(place, last + 1):
            soon = begin + stretches.offset[min(j + COMMIT_AHEAD, last)]
            later = begin + stretches.offset[min(j + 2 * COMMIT_AHEAD, last)]
            prefetch(WORD, src, begin + stretches.offset[min(j + 3 * COMMIT_AHEAD, last)])
            prefetch(WORD, dst, begin + stretches.offset[min(j + 3 * COMMIT_AHEAD, last)])
            prefetch_copies(table, src[soon], src[later])
            prefetch_copies(table, dst[soon], dst[later])
            e, q = begin + stretches.offset[j], stretches.part[j]
            u, v, p = src[e], dst[e], state.edge_part[e]
            # Moves before this one may have filled q. Others may have changed the counts: both prices are looked up
            # again.
            if state.arcs[q] + arcs > limit[q]:
                continue
            now = price_and_bound(table, u, v, p, prices)[0]
            if price_in(table, u, v, q, prices) < now - LEAST_SAVING:
                move_edge(state, e, u, v, p, q, 1.0 if u == v else arcs)
                moves += 1
        place += stretches.ends[i] - begin
    return moves
