"""Refinement of one-way graphs in the currency of update on owners: each role of a copy is charged where it occurs.

A vertex is taken apart into the source and the target of its arcs; one more row joins the two: its part is the owner.
Then the copies of the two, less one each, are exactly the rows that the vertex exchanges in a layer, and moving the row
is moving the owner. Arcs and owners move in turn, as edges do in refine.py, under a limit of arcs and one of owned
vertices.

Two-way graphs have no use for it: a copy there has both roles, unless the two arcs of an edge part, and the fewest rows
that each direction can have alone they can have together.

Shapes: M arcs, N vertices, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.partition.copy_table import add_rows, empty_table
from distgnn.partition.owners import owned_limit
from distgnn.partition.refine import SCHEDULE, State, arc_limit, count_rows, sweep
from distgnn.partition.reorder import Rows

BALANCE = 1.03
BETA = 0.3  # copies may differ more between parts here than arcs and owned vertices
ROUNDS = 2


def refine_roles(
    edge_list, edge_part: np.ndarray, owner: np.ndarray, shares: np.ndarray, schedule: tuple[float, ...] = SCHEDULE
) -> tuple[np.ndarray, np.ndarray]:
    """Fewer exchange rows: part [M] int16 of each arc and owner [N] int32.

    Args: edge_list: one arc per row; edge_part: [M] and owner: [N], where to start; shares: [P], see `part_shares`.
    Notes: memory about 20 bytes for each arc and 30 for each vertex.
    """
    if len(edge_part) == 0:
        return np.asarray(edge_part, dtype=np.int16), np.asarray(owner, dtype=np.int32)
    num_nodes, num_parts = edge_list.num_nodes, len(shares)
    ids = np.arange(num_nodes, dtype=edge_list.src.dtype)
    arcs = Rows(edge_list.src, edge_list.dst + ids.dtype.type(num_nodes), 2 * num_nodes, False, len(edge_list.src))
    joints = Rows(ids, ids + ids.dtype.type(num_nodes), 2 * num_nodes, False, num_nodes)
    ends = np.bincount(arcs.src, minlength=2 * num_nodes) + np.bincount(arcs.dst, minlength=2 * num_nodes) + 1
    table = empty_table(ends, num_parts)
    copies = np.zeros(num_parts, dtype=np.int64)
    states = []
    for rows, parts in ((arcs, edge_part), (joints, owner)):
        state = State(parts.astype(np.int16), table, np.bincount(parts, minlength=num_parts).astype(float), copies)
        add_rows(rows.src, rows.dst, state.edge_part, table)
        states.append(state)
    count_rows(table, copies)
    limits = arc_limit(arcs, shares, BALANCE), owned_limit(num_nodes, shares).astype(np.float64)
    for s in ROUNDS * schedule:
        for rows, state, limit in zip((arcs, joints), states, limits, strict=True):
            sweep(rows, state, limit, BETA, s, shares)
    return states[0].edge_part, states[1].edge_part.astype(np.int32)
