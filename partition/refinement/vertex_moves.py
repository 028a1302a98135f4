"""Moves of all edges that a vertex, or a cluster of vertices, has in one part, as ends of lower degree.

A single edge that leaves its neighbours costs copies until the last of them has followed; together they may go.

Shapes: M edges, N vertices, P parts.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.core.edges import SMALL, EdgeArrays
from distgnn.partition.refinement.group_loads import no_row_loads, start_loads
from distgnn.partition.refinement.group_moves import EXTRA_PRICE, Placement, move_groups
from distgnn.partition.refinement.groups import count_groups, groups_of, without_gaps
from distgnn.partition.refinement.replica_table import count_copies, empty_table

SWEEPS = 8


def move_vertices(
    edges: EdgeArrays,
    edge_part: np.ndarray,
    degrees: np.ndarray,
    shares: np.ndarray,
    clusters: np.ndarray | None = None,
    fixed: tuple[EdgeArrays, np.ndarray] | None = None,
    extra_price: float = EXTRA_PRICE,
    row_price: float = 0.0,
) -> np.ndarray:
    """Part [M] int16 after moves of all edges that a source, or a cluster, has in one part.

    Args: clusters: [M], numbers from 0 on; with them edges are in any order. fixed: edges and their parts that stay
        where they are, and are no load. extra_price, row_price: of imbalance, see `move_groups`.
    """
    num_parts, size = len(shares), len(edge_part)
    if clusters is None:
        ids = np.empty(size, dtype=np.int32)
        num_groups = _number_groups(edges.src, edge_part, np.full((num_parts, 2), -1, dtype=np.int64), ids)
    else:
        ids, num_groups = without_gaps(clusters.astype(np.int64) * len(shares) + edge_part)
    ends, parts = edges, edge_part
    if fixed is not None:
        # Each fixed edge is a group of size 0, which `move_groups` never visits: it only says which copies stay.
        ids = np.concatenate([ids, np.arange(num_groups, num_groups + len(fixed[1]), dtype=np.int32)])
        src, dst = np.concatenate([edges.src, fixed[0].src]), np.concatenate([edges.dst, fixed[0].dst])
        ends, parts = edges._replace(src=src, dst=dst), np.concatenate([edge_part, fixed[1]])
    groups = groups_of(ends, ids, num_groups + len(ids) - size)
    groups.sizes[num_groups:] = 0
    part_of_group = np.empty(len(groups.sizes), dtype=np.int16)
    # All edges of a group are in one part, so it makes no difference which of them is written last.
    part_of_group[ids] = parts
    table = empty_table(degrees, num_parts)
    count_groups(groups, part_of_group, table, once=True)
    copies = np.zeros(num_parts, dtype=np.int64)
    count_copies(table, copies)
    # Fixed edges are groups of size 0: their vertices count as copies, they themselves as no load.
    num_edges = np.bincount(part_of_group, weights=groups.sizes, minlength=num_parts)
    loads = start_loads(num_edges, copies.astype(np.float64), size * shares, copies.sum() * shares)
    # Of large graphs one sweep, judged by all threads: further ones find a tenth of what the first does. Not so in
    # V-cycles, where rows have a price: most of their groups are clusters, and these are few.
    how = (SWEEPS, "in turn") if size <= SMALL or row_price else (1, "in blocks")
    placement = Placement(part_of_group, table, loads, no_row_loads(num_parts))
    move_groups(groups, placement, shares, degrees, *how, extra_price, row_price)
    return part_of_group[ids[:size]]


@kernel
def _number_groups(src, edge_part, last_seen, group_ids):
    """group_ids = one number for each (source, part), in the order of the edges.

    last_seen: [P, 2], the last source with an edge in each part and the number of that pair; -1 at first.
    """
    # Edges of one source lie side by side, so remembering one source for each part is enough: no hash table.
    found = 0
    for e in range(src.shape[0]):
        p = edge_part[e]
        if last_seen[p, 0] != src[e]:
            last_seen[p, 0], last_seen[p, 1] = src[e], found
            found += 1
        group_ids[e] = last_seen[p, 1]
    return found
