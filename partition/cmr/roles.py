"""Refinement of one-way graphs in the currency of update on owners: each role of a copy is charged where it occurs.

A vertex is taken apart into the source and the target of its arcs; one more row joins the two: its part is the owner.
Then the copies of the two, less one each, are exactly the rows that the vertex exchanges in a layer, and moving the row
is moving the owner. Arcs and owners move in turn, as edges do in refine.py, under a limit of arcs and one of owned
vertices; where the graph is not large, both then move together with the borders between two parts (pair_moves.py).

Two-way graphs have no use for it: a copy there has both roles, unless the two arcs of an edge part, and the fewest rows
that each direction can have alone they can have together.

Shapes: M arcs, N vertices, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.partition.cmr.improve import BETWEEN, in_cycles, num_copies
from distgnn.partition.core.edges import SMALL, EdgeArrays, group
from distgnn.partition.core.owners import owned_limit
from distgnn.partition.flow.pair_rounds import Limits, cut_pairs
from distgnn.partition.moves.edge_moves import SCHEDULE, State, arc_limit, count_rows, shed, sweep
from distgnn.partition.moves.replica_table import add_rows, empty_table
from distgnn.partition.moves.vertex_moves import move_vertices

BALANCE = 1.03
BETA = 0.3  # copies may differ more between parts here than arcs and owned vertices
HELD = 1.15  # of its share, the most copies of a part while flows move its borders
ROUNDS = 3


def refine_roles(
    edge_list, edge_part: np.ndarray, owner: np.ndarray, shares: np.ndarray, schedule: tuple[float, ...] = SCHEDULE
) -> tuple[np.ndarray, np.ndarray]:
    """Fewer exchange rows: part [M] int16 of each arc and owner [N] int32.

    Args: edge_list: one arc per row; edge_part: [M] and owner: [N], where to start; shares: [P], see `part_shares`.
    Notes: memory about 20 bytes for each arc and 30 for each vertex; up to `SMALL` arcs what flows need, see within.py.
    """
    if len(edge_part) == 0:
        return np.asarray(edge_part, dtype=np.int16), np.asarray(owner, dtype=np.int32)
    num_nodes = edge_list.num_nodes
    ids = np.arange(num_nodes, dtype=edge_list.src.dtype)
    arcs = EdgeArrays(
        edge_list.src, edge_list.dst + ids.dtype.type(num_nodes), 2 * num_nodes, False, len(edge_list.src)
    )
    joints = EdgeArrays(ids, ids + ids.dtype.type(num_nodes), 2 * num_nodes, False, num_nodes)
    ends = np.bincount(arcs.src, minlength=2 * num_nodes) + np.bincount(arcs.dst, minlength=2 * num_nodes) + 1
    parts = [edge_part.astype(np.int16), owner.astype(np.int16)]
    limits = arc_limit(arcs, shares, BALANCE), owned_limit(num_nodes, shares).astype(np.float64)
    for left in reversed(range(ROUNDS if len(edge_part) <= SMALL else 1)):
        parts = _refine_both((arcs, joints), parts, limits, ends, shares, schedule)
        if left:
            for by, other in ((arcs.src, arcs.dst), (arcs.dst, arcs.src)):
                order, _ = group(by, 2 * num_nodes)
                rows = arcs._replace(src=by[order], dst=other[order])
                parts[0][order] = move_vertices(rows, parts[0][order], ends, shares, (joints, parts[1]))
    if len(edge_part) <= SMALL:
        parts = _refine_borders((arcs, joints), parts, limits, ends, shares)
    return parts[0], parts[1].astype(np.int32)


def _refine_borders(row_sets, parts, limits, ends, shares) -> list[np.ndarray]:
    """Flows and sweeps in turn; a joint is no arc but an owned vertex."""
    arcs, joints = row_sets
    src, dst = (np.concatenate(both) for both in zip(arcs[:2], joints[:2], strict=True))
    rows = arcs._replace(src=src, dst=dst)
    weights = np.zeros((len(src), 2), dtype=np.float32)
    weights[: len(arcs.src), 0] = weights[len(arcs.src) :, 1] = 1

    def flows(found, copies):
        held = np.stack([HELD * copies * shares, np.full(len(shares), np.inf)], axis=1)
        both, worth_while = cut_pairs(rows, np.concatenate(found), Limits(weights, np.stack(limits, axis=1), held))
        return [both[: len(arcs.src)], both[len(arcs.src) :]], worth_while

    def sweeps(found):
        return _refine_both(row_sets, found, limits, ends, shares, BETWEEN)

    return in_cycles(parts, flows, sweeps, lambda found: num_copies(rows, np.concatenate(found), ends, len(shares)))


def _refine_both(row_sets, parts, limits, ends, shares, schedule) -> list[np.ndarray]:
    """Sweeps over arcs and joints in turn; both are counted in one table."""
    table = empty_table(ends, len(shares))
    copies = np.zeros(len(shares), dtype=np.int64)
    states = []
    for rows, part in zip(row_sets, parts, strict=True):
        states.append(State(part.copy(), table, np.bincount(part, minlength=len(shares)).astype(float), copies))
        add_rows(rows, part, table)
    count_rows(table, copies)
    for s in schedule:
        for rows, state, limit in zip(row_sets, states, limits, strict=True):
            sweep(rows, state, limit, BETA, s, shares)
    shed(row_sets[0], states[0], limits[0])
    return [state.edge_part for state in states]
