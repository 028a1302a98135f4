"""Vertices in one part only, of which a part may not have more than it may own.

Nobody else can own such a vertex without a further copy. Where a part has too many of them, or too many copies, some
move with all their edges to a part where that makes no more copies: ends of edges whose other ends are in both parts.

Shapes: M edges, N vertices, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.partition.core.edges import EdgeArrays
from distgnn.partition.moves.cut_state import move_edge, start_state
from distgnn.partition.moves.replica_table import COPIES, DEGREE, PART_SHIFT, CopyTable, is_dense, num_edges_in

MOST_COPIES = 1.03  # of a part over its share: beyond it gives vertices away, below it takes them
MOST_EDGES = 16  # of a vertex that moves


def even_inner(
    edges: EdgeArrays,
    parts: np.ndarray,
    degrees: np.ndarray,
    shares: np.ndarray,
    max_owned: np.ndarray,
    max_arcs: np.ndarray,
) -> np.ndarray:
    """Part [M] int16 with fewer vertices above what a part may own, fewer copies above its share, and no more copies.

    Args: edges: sorted by source; parts: int16 [M]; degrees: [N]; shares: [P]; max_owned, max_arcs: [P], of
        `owned_limit` and `arc_limit`.
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


@inline(_nrt=False)
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


@kernel(_nrt=False)
def _count_inner(table, inner):
    """inner[p] = the vertices in part p only."""
    for v in range(table.vertex.shape[0]):
        p = _only_part(table, v)
        if p >= 0:
            inner[p] += 1


@kernel(_nrt=False)
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


@inline(_nrt=False)
def _change_inner(table, v, sign, inner):
    """Take vertex v out of the count, or put it in, if it is in one part only."""
    p = _only_part(table, v)
    if p >= 0:
        inner[p] += sign
