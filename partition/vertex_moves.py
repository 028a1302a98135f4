"""Moves of all edges that a vertex has in one part, as the end of lower degree: between clusters and single edges.

A single edge that leaves its neighbours costs copies before the last of them has followed; together they may go.

Shapes: M rows, N vertices, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.jit import kernel
from distgnn.partition.copy_table import add_copy, empty_table
from distgnn.partition.group_moves import Loads, Placement, groups_of, settle
from distgnn.partition.refine import count_rows

SWEEPS = 8


def move_vertices(rows, edge_part: np.ndarray, degrees: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Part [M] int16 after the moves.

    Args: rows: from `ordered_rows`, sorted by source; edge_part: int16 [M]; degrees: [N]; shares: [P].
    """
    num_parts = len(shares)
    group_ids = np.empty(len(edge_part), dtype=np.int32)
    num_groups = _number_groups(rows.src, edge_part, np.full((num_parts, 2), -1, dtype=np.int64), group_ids)
    groups = groups_of(rows, group_ids, num_groups)
    parts = np.empty(num_groups, dtype=np.int16)
    parts[group_ids] = edge_part
    table = empty_table(degrees, num_parts)
    _fill(groups, parts, table)
    copies = np.zeros(num_parts, dtype=np.int64)
    count_rows(table, copies)
    arcs = np.bincount(parts, weights=groups.sizes, minlength=num_parts)
    loads = Loads(arcs, copies.astype(np.float64), len(edge_part) * shares, copies.sum() * shares)
    settle(groups, Placement(parts, table, loads), shares, rows.num_nodes, SWEEPS, "in turn")
    return parts[group_ids]


@kernel
def _number_groups(src, edge_part, last_seen, group_ids):
    """group_ids = one number for each (source, part), as they come; last_seen [P, 2]: source and number, -1."""
    found = 0
    for e in range(src.shape[0]):
        p = edge_part[e]
        if last_seen[p, 0] != src[e]:
            last_seen[p, 0], last_seen[p, 1] = src[e], found
            found += 1
        group_ids[e] = last_seen[p, 1]
    return found


@kernel(_nrt=False)
def _fill(groups, parts, table):
    for c in range(parts.shape[0]):
        for j in range(groups.indptr[c], groups.indptr[c + 1]):
            add_copy(table, groups.members[j], parts[c])
