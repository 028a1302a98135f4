"""The state of a cut while edges move: parts, copy table and loads, kept consistent; and the return below the limits.

Shapes: M edges, N vertices, P parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run
from distgnn.partition.core.edges import EdgeArrays, Edges, endpoint_degrees
from distgnn.partition.refinement.replica_table import (
    COPIES,
    DEGREE,
    PART_SHIFT,
    CopyTable,
    add_edge,
    count_copies,
    count_edges,
    empty_table,
    is_dense,
    num_edges_in,
    remove_edge,
)

MOST_COPIES = 1.03  # of a part over its share: beyond it gives vertices away, below it takes them
MOST_EDGES = 16  # of a vertex that moves


class State(NamedTuple):
    """A cut under refinement: part of each edge [M], copy table, arcs and copies of each part [P]."""

    edge_part: np.ndarray
    table: CopyTable
    arcs: np.ndarray
    num_copies: np.ndarray


def start_state(
    edge_list: Edges,
    parts: np.ndarray,
    num_parts: int,
    degrees: np.ndarray | None = None,
    table: CopyTable | None = None,
) -> State:
    if table is None:
        table = empty_table(endpoint_degrees(edge_list) if degrees is None else degrees, num_parts)
        count_edges(edge_list, parts, table)
    # One line of counts for each thread. They are whole numbers, which float64 adds exactly, so the sum has no order.
    arcs = np.zeros((get_num_threads(), num_parts))
    run(_count_arcs, range(len(arcs) + 1), edge_list.src, edge_list.dst, parts, 2 if edge_list.two_way else 1, arcs)
    num_copies = np.zeros(num_parts, dtype=np.int64)
    count_copies(table, num_copies)
    return State(parts, table, arcs.sum(axis=0), num_copies)


@kernel(counted=False)
def _count_arcs(share, _, src, dst, edge_part, arcs_per_edge, arcs):
    """arcs[share, P] = the arcs of each part in one share of the edges; a self-loop is one."""
    edges, shares = src.shape[0], arcs.shape[0]
    for e in range(edges * share // shares, edges * (share + 1) // shares):
        arcs[share, edge_part[e]] += 1 if src[e] == dst[e] else arcs_per_edge


def arc_limit(edge_list: Edges, shares: np.ndarray, balance: float) -> np.ndarray:
    """Most arcs [P] a part may have: `balance` times its share, but at least its share in whole edges."""
    fair = edge_list.num_arcs * shares
    # In whole two-way edges, two arcs each: where a share is a few edges, 1.03 of it may be less than the next whole
    # one.
    return np.maximum(balance * fair, np.ceil(fair / 2) * 2)


@inline(counted=False)
def move_edge(state, e, u, v, p, q, arcs):
    state.edge_part[e] = q
    state.arcs[p] -= arcs
    state.arcs[q] += arcs
    # Remove before adding: a sparse vertex has no more slots than edges.
    state.num_copies[p] -= remove_edge(state.table, u, p)
    state.num_copies[q] += add_edge(state.table, u, q, 1)
    if u != v:
        state.num_copies[p] -= remove_edge(state.table, v, p)
        state.num_copies[q] += add_edge(state.table, v, q, 1)


def rebalance(edge_list: Edges, state: State, limit: np.ndarray) -> None:
    """Take edges out of overfull parts, where that makes fewest new copies, until no part is beyond the limit [P]."""
    arcs = 2.0 if edge_list.two_way else 1.0
    # Edges that need no new copy elsewhere first; then one, then two, for both ends.
    for new_copies in range(3):
        if (state.arcs <= limit).all():
            return
        _rebalance(edge_list.src, edge_list.dst, state, arcs, limit, new_copies)


@kernel(counted=False)
def _rebalance(src, dst, state, arcs, limit, new_copies):
    """Move edges of overfull parts to the least loaded part that needs at most this many new copies."""
    for e in range(src.shape[0]):
        p = state.edge_part[e]
        if state.arcs[p] <= limit[p]:
            continue
        u, v = src[e], dst[e]
        best = -1
        for q in range(state.arcs.shape[0]):
            # p itself is over its limit, so it is passed over here like any full part.
            if state.arcs[q] + arcs > limit[q] or (best >= 0 and state.arcs[q] >= state.arcs[best]):
                continue
            missing = (num_edges_in(state.table, u, q) == 0) + (num_edges_in(state.table, v, q) == 0)
            if missing <= new_copies:
                best = q
        if best >= 0:
            move_edge(state, e, u, v, p, best, 1.0 if u == v else arcs)


def even_inner(
    edges: EdgeArrays,
    parts: np.ndarray,
    degrees: np.ndarray,
    shares: np.ndarray,
    max_owned: np.ndarray,
    max_arcs: np.ndarray,
) -> np.ndarray:
    """Part [M] int16 with fewer vertices above what a part may own, fewer copies above its share, and no more copies.

    Nobody else can own a vertex in one part only without a further copy. Where a part has too many of them, or too many
    copies, some move with all their edges to a part where that makes no more copies.
    """
    state = start_state(edges, parts.copy(), len(shares), degrees)
    inner = np.zeros(len(shares), dtype=np.int64)
    _count_inner(state.table, inner)
    max_copies = MOST_COPIES * state.num_copies.sum() * shares
    if (inner > max_owned).any() or (state.num_copies > max_copies).any():
        starts = np.searchsorted(edges.src, np.arange(edges.num_nodes + 1))
        arcs = 2.0 if edges.two_way else 1.0
        _shed(edges.src, edges.dst, starts, state, arcs, inner, max_owned, max_arcs, max_copies)
    return state.edge_part


def copies_with_owners(table: CopyTable, max_owned: np.ndarray) -> int:
    """Copies of all vertices, and one more for each in one part only that is beyond what that part may own."""
    inner = np.zeros(len(max_owned), dtype=np.int64)
    _count_inner(table, inner)
    return int(table.vertex[:, COPIES].sum() + np.maximum(inner - max_owned, 0).sum())


@inline(counted=False)
def _only_part(table, v):
    """The one part that vertex v is in; -1 if it is in several, or none."""
    if table.vertex[v, COPIES] != 1:
        return -1
    if not is_dense(table, v):
        return table.slots[table.first[v]] >> PART_SHIFT
    for p in range(table.num_parts):
        if table.counts[table.first[v] + p] > 0:
            return p
    return -1


@kernel(counted=False)
def _count_inner(table, inner):
    """inner[p] = the vertices in part p only."""
    for v in range(table.vertex.shape[0]):
        p = _only_part(table, v)
        if p >= 0:
            inner[p] += 1


@kernel(counted=False)
def _shed(src, dst, starts, state, arcs, inner, max_owned, max_arcs, max_copies):
    """Move vertices of few edges, all of which begin at them, out of parts with too many of them or of copies."""
    table = state.table
    for v in range(table.vertex.shape[0]):
        begin, end = starts[v], starts[v + 1]
        if end - begin != table.vertex[v, DEGREE] or not 0 < end - begin <= MOST_EDGES:
            continue
        p = _only_part(table, v)
        if p < 0 or (inner[p] <= max_owned[p] and state.num_copies[p] <= max_copies[p]):
            continue
        best, fewest = -1, 1
        for q in range(table.num_parts):
            if inner[q] + 1 > max_owned[q] or state.num_copies[q] + 1 > max_copies[q]:
                continue
            if state.arcs[q] + arcs * (end - begin) > max_arcs[q]:
                continue
            more = 0
            for e in range(begin, end):  # none of them a self-loop, which would count twice in the degree
                more += (num_edges_in(table, dst[e], q) == 0) - (num_edges_in(table, dst[e], p) == 1)
            # As few copies as possible; of equal parts the one with most room.
            roomier = best >= 0 and more == fewest and inner[q] - max_owned[q] < inner[best] - max_owned[best]
            if more < fewest or roomier:
                best, fewest = q, more
        if best >= 0:
            for e in range(begin, end):
                _change_inner(table, v, -1, inner)
                _change_inner(table, dst[e], -1, inner)
                move_edge(state, e, v, dst[e], p, best, arcs)
                _change_inner(table, v, 1, inner)
                _change_inner(table, dst[e], 1, inner)


@inline(counted=False)
def _change_inner(table, v, sign, inner):
    """Take vertex v out of the count, or put it in, if it is in one part only."""
    p = _only_part(table, v)
    if p >= 0:
        inner[p] += sign
