"""Refinement: move single edges to a part where one of their ends already is, if that makes copies fewer.

The price of vertex v in part p, which computes c > 0 of its edges, is c / (c + s). With a large s a vertex pays less
where its edges are many: they concentrate. s falls to 0, where every copy costs 1. A part's prices are multiplied by
exp(beta * (rows / share - 1)), so full parts let go; no part exceeds a hard limit of arcs.

A block of edges is evaluated in parallel against frozen state; then the moves are made in order, each checked again. So
the result does not depend on the number of threads. A block takes stretches from all over the edge list, because
neighbours in it would all decide at once.

Shapes: M rows of the edge list, P parts.
Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run, thread_chunks
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.moves.edge_price import (
    LEAST_SAVING,
    SMALLEST_S,
    Prices,
    best_part,
    now_and_at_best,
    one_more,
    price_in,
    price_of,
)
from distgnn.partition.moves.replica_table import (
    AHEAD,
    CopyTable,
    add_copy,
    ask_for,
    count_in,
    count_shared,
    drop_copy,
    table_of,
)

BLOCKS = 100  # a block is a hundredth of the edges
FEW_ROWS = 4000  # for a call: below this its own cost counts
MOST_CHUNKS = 16  # of a block for each thread, so that none waits long for the last
STRETCHES = 64  # of consecutive edges in a block
SCHEDULE = (2.0, 0.5, 0.1, 0.0, 0.0)
LEAST_GAIN = 1e-3  # copies: an edge that could save less is not looked at
COMMIT_AHEAD = 8  # moves between asking for the copies of an edge's ends and looking at them
EDGE_PRICE = 0.02
OVERFULL_PRICE = 4.0
WORD = Tile(lanes=1, offsets=(0,), heads=(0,))
STEEPEST = 8.0  # exponent of a part's price: one edge on thousands of parts must not overflow


class State(NamedTuple):
    """A cut under refinement: part of each row [M], copy table, arcs and rows (copies) of each part [P]."""

    edge_part: np.ndarray
    table: CopyTable
    arcs: np.ndarray
    rows: np.ndarray


class Stretches(NamedTuple):
    """The stretches of a block, and proposals for its rows.

    begins, ends: int64 [stretches], rows; offset: int32 and part: int16, for each proposal its row after `begins` and
    the better part, those of a stretch from the number of rows in the stretches before it on; found: int64 [stretches],
    how many.
    """

    begins: np.ndarray
    ends: np.ndarray
    offset: np.ndarray
    part: np.ndarray
    found: np.ndarray


def refine(
    edge_list,
    edge_part: np.ndarray,
    shares: np.ndarray,
    balance: float = 1.03,
    beta: float = 2.0,
    schedule: tuple[float, ...] = SCHEDULE,
    degrees: np.ndarray | None = None,
    table: CopyTable | None = None,
) -> np.ndarray:
    """Fewer copies at balanced parts.

    Args:
        edge_part: [M], the cut to start from; both arcs of a row are together.
        shares: [P], see `part_shares`.
        balance: hard limit on a part's arcs over its share.
        beta: how strongly full parts (by rows) raise their prices.
        schedule: the values of s, one sweep over all edges each.
        degrees: [N], see `endpoint_degrees`, where they are known; table: of this cut, if there is one.
    Returns: part [M] int16.
    """
    num_parts = len(shares)
    if num_parts == 1 or len(edge_part) == 0:
        return np.asarray(edge_part, dtype=np.int16)
    state = start_state(edge_list, np.array(edge_part, dtype=np.int16), num_parts, degrees, table)
    limit = arc_limit(edge_list, shares, balance)
    for s in schedule:
        sweep(edge_list, state, limit, beta, s, shares)
    shed(edge_list, state, limit)
    return state.edge_part


def start_state(edge_list, parts: np.ndarray, num_parts: int, degrees=None, table: CopyTable | None = None) -> State:
    """The state of a cut.

    Args: parts: int16 [M], from now on the state's (they may lie on disk); degrees: [N], table: where they are known.
    """
    if table is None:
        table = table_of(edge_list, parts, endpoint_degrees(edge_list) if degrees is None else degrees, num_parts)
    arcs = np.zeros((get_num_threads(), num_parts))
    run(_count_arcs, range(len(arcs) + 1), edge_list.src, edge_list.dst, parts, 2 if edge_list.two_way else 1, arcs)
    rows = np.zeros(num_parts, dtype=np.int64)
    count_rows(table, rows)
    return State(parts, table, arcs.sum(axis=0), rows)


@kernel(_nrt=False)
def _count_arcs(share, _, src, dst, edge_part, arcs_per_row, arcs):
    """arcs[share, P] = the arcs of each part in one share of the rows; a self-loop is one."""
    rows, shares = src.shape[0], arcs.shape[0]
    for e in range(rows * share // shares, rows * (share + 1) // shares):
        arcs[share, edge_part[e]] += 1 if src[e] == dst[e] else arcs_per_row


def arc_limit(edge_list, shares: np.ndarray, balance: float) -> np.ndarray:
    """Most arcs [P] a part may have; at least one row's, whatever its share."""
    fair = edge_list.num_arcs * shares
    return np.maximum(balance * fair, np.ceil(fair / 2) * 2)


def sweep(
    edge_list, state: State, limit: np.ndarray, beta: float, s: float, shares: np.ndarray, prices_at=None, step=None
) -> int:
    """Visit every edge once at one s; returns the number of moves.

    Args: prices_at: prices_at(state, limit, beta, s, shares, arcs of a row) -> `Prices`, by default those of copies;
        step: told of progress as step(done, total).
    """
    prices_at = prices_at or _prices
    rows = len(state.edge_part)
    pieces = min(BLOCKS, max(1, rows // 64))
    bounds = _stretch_bounds(rows, pieces)
    room = int(np.diff(bounds, axis=1).sum(axis=0).max(initial=0))
    found = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int16), np.empty(len(bounds), dtype=np.int64)
    arcs = 2.0 if edge_list.two_way else 1.0
    each = min(MOST_CHUNKS, room // (FEW_ROWS * get_num_threads()))
    chunks = thread_chunks(len(bounds), each) if each else [0, len(bounds)]
    moves = 0
    for block in range(pieces):
        stretches = Stretches(bounds[:, block].copy(), bounds[:, block + 1].copy(), *found)
        prices = prices_at(state, limit, beta, s, shares, arcs)
        args = (stretches, edge_list.src, edge_list.dst, state, prices, arcs, limit)
        run(_propose, chunks, *args)
        moves += _commit(*args)
        if step is not None:
            step(block + 1, pieces)
    return moves


def _stretch_bounds(rows: int, pieces: int) -> np.ndarray:
    """[stretches, pieces + 1]: block b takes rows bounds[i, b] to bounds[i, b + 1] of every stretch i."""
    stretches = min(STRETCHES, max(1, rows // (4 * pieces)))
    starts = rows * np.arange(stretches + 1, dtype=np.int64) // stretches
    steps = np.arange(pieces + 1, dtype=np.int64)
    return starts[:-1, None] + (np.diff(starts)[:, None] * steps) // pieces


def _prices(state: State, limit: np.ndarray, beta: float, s: float, shares: np.ndarray, arcs: float) -> Prices:
    """Prices at these loads. An edge's own are raised by 1, so that none is negative."""
    weight = np.exp(np.minimum(beta * (state.rows / (state.rows.sum() * shares) - 1), STEEPEST))
    price = 1 + EDGE_PRICE * (state.arcs / (state.arcs.sum() * shares) - 1) + OVERFULL_PRICE * (state.arcs > limit)
    return prices_of(s, weight, price, state.arcs + arcs > limit)


def prices_of(s: float, weight: np.ndarray, price: np.ndarray, full: np.ndarray) -> Prices:
    """Prices in float32: weight of a copy and price of an edge (above 0) of each part [P], and which have no room."""
    into = np.where(full, np.inf, price)
    least = weight.min(), into.min()
    return Prices(*(np.asarray(x, dtype=np.float32)[()] for x in (max(s, SMALLEST_S), weight, into, price, *least)))


@kernel
def _propose(start, stop, stretches, src, dst, state, prices, arcs, limit):
    """Proposals for the rows of the stretches from start to stop."""
    costs = np.empty(limit.shape[0], dtype=np.float32)
    beside = np.full(limit.shape[0], one_more(prices.s, 0), dtype=np.float32)
    scratch = (costs, costs.view(np.int32), beside)
    _propose_each(start, stop, stretches, src, dst, state, prices, limit, scratch)


@inline(_nrt=False)
def _propose_each(start, stop, stretches, src, dst, state, prices, limit, scratch):
    table = state.table
    place = 0
    for i in range(start):
        place += stretches.ends[i] - stretches.begins[i]
    for i in range(start, stop):
        begin, end = stretches.begins[i], stretches.ends[i]
        found = place
        for e in range(begin, end):
            ask_for(table, dst[min(e + AHEAD, end - 1)], dst[min(e + 2 * AHEAD, end - 1)])
            u, v, p = src[e], dst[e], state.edge_part[e]
            if table.used[u, 0] == 1 and table.used[v, 0] == 1 and state.arcs[p] <= limit[p]:
                continue
            now, at_best = now_and_at_best(table, u, v, p, prices)
            if now >= prices.out_of[p] + LEAST_GAIN and now - at_best > LEAST_SAVING:
                q = best_part(table, u, v, p, now, prices, *scratch)
                if q >= 0:
                    stretches.offset[found], stretches.part[found] = e - begin, q
                    found += 1
        stretches.found[i] = found - place
        place += end - begin


@kernel(_nrt=False)
def _commit(stretches, src, dst, state, prices, arcs, limit):
    """Make the proposed moves that still pay, in order; returns how many."""
    table = state.table
    moves = place = 0
    for i in range(stretches.begins.shape[0]):
        begin, last = stretches.begins[i], place + stretches.found[i] - 1
        for j in range(place, last + 1):
            coming = begin + stretches.offset[min(j + COMMIT_AHEAD, last)]
            soon = begin + stretches.offset[min(j + 2 * COMMIT_AHEAD, last)]
            prefetch(WORD, src, begin + stretches.offset[min(j + 3 * COMMIT_AHEAD, last)])
            prefetch(WORD, dst, begin + stretches.offset[min(j + 3 * COMMIT_AHEAD, last)])
            ask_for(table, src[coming], src[soon])
            ask_for(table, dst[coming], dst[soon])
            e, q = begin + stretches.offset[j], stretches.part[j]
            u, v, p = src[e], dst[e], state.edge_part[e]
            if state.arcs[q] + arcs > limit[q]:
                continue
            now = price_of(table, u, v, p, prices)
            if price_in(table, u, v, q, prices) < now - LEAST_SAVING:
                _move(state, e, u, v, p, q, 1.0 if u == v else arcs)
                moves += 1
        place += stretches.ends[i] - begin
    return moves


@inline(_nrt=False)
def _move(state, e, u, v, p, q, arcs):
    state.edge_part[e] = q
    state.arcs[p] -= arcs
    state.arcs[q] += arcs
    # Drop before adding: a vertex has no more slots than edges.
    state.rows[p] -= drop_copy(state.table, u, p)
    state.rows[q] += add_copy(state.table, u, q)
    if u != v:
        state.rows[p] -= drop_copy(state.table, v, p)
        state.rows[q] += add_copy(state.table, v, q)


@kernel(_nrt=False)
def count_rows(table, rows):
    """rows [P] += the copies in each part."""
    for v in range(table.used.shape[0]):
        count_shared(table, v, -1, rows)


def shed(edge_list, state: State, limit: np.ndarray) -> None:
    """Take rows out of overfull parts, where that makes fewest new copies, until no part is beyond the limit."""
    arcs = 2.0 if edge_list.two_way else 1.0
    for new_copies in range(3):
        if (state.arcs <= limit).all():
            return
        _shed(edge_list.src, edge_list.dst, state, arcs, limit, new_copies)


@kernel(_nrt=False)
def _shed(src, dst, state, arcs, limit, new_copies):
    """Move rows of overfull parts to the least loaded part that needs at most this many new copies."""
    for e in range(src.shape[0]):
        p = state.edge_part[e]
        if state.arcs[p] <= limit[p]:
            continue
        u, v = src[e], dst[e]
        best = -1
        for q in range(state.arcs.shape[0]):
            if state.arcs[q] + arcs > limit[q] or (best >= 0 and state.arcs[q] >= state.arcs[best]):
                continue
            missing = (count_in(state.table, u, q) == 0) + (count_in(state.table, v, q) == 0)
            if missing <= new_copies:
                best = q
        if best >= 0:
            _move(state, e, u, v, p, best, 1.0 if u == v else arcs)
