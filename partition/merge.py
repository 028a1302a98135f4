"""Merge clusters of edges into parts, balancing arcs and copies at once.

Clusters go, largest first, where they add least: new copies, plus a steep price on the part's arcs and copies over
its share. Then single clusters move while that pays.

Shapes: K clusters, N vertices, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.jit import kernel
from distgnn.kernels.threads import even_chunks, run
from distgnn.partition.copy_table import add_copy, empty_table
from distgnn.partition.group_moves import Loads, Placement, cost_in, groups_of, lift, settle, shared_parts

MOST_SWEEPS = 32
IN_TURN = 10**6  # incidences up to which clusters are judged one after the other; beyond, one sweep in blocks must do
FIRST_GUESS = 1.2  # copies per vertex before any are known


def merge_clusters(
    edge_list, clusters: np.ndarray, num_clusters: int, degrees: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Part [K] int16 of each cluster of rows.

    Args: clusters: [M] int32 from `edge_clusters`; degrees: [N]; shares: [P], see `part_shares`.
    """
    num_parts = len(shares)
    groups = groups_of(edge_list, clusters, num_clusters)
    guess = FIRST_GUESS * np.count_nonzero(degrees) * shares
    loads = Loads(np.zeros(num_parts), np.zeros(num_parts), len(clusters) * shares, guess)
    parts = np.full(num_clusters, -1, dtype=np.int16)
    placement = Placement(parts, empty_table(degrees, num_parts), loads)
    largest_first = np.argsort(-groups.sizes, kind="stable").astype(np.int32)
    _place(largest_first, groups, placement, np.empty(num_parts, dtype=np.int32))
    sweeps, how = (MOST_SWEEPS, "all in turn") if len(groups.members) <= IN_TURN else (1, "in blocks")
    settle(groups, placement, shares, edge_list.num_nodes, sweeps, how)
    return parts


def edge_clusters(rows, labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Cluster [M] int32 of each row, the one of its source (its lower-degree end), and their number K.

    Args: rows: from `ordered_rows`; labels: [N], the label of each vertex. Clusters are numbered without gaps.
    """
    present = np.zeros(max(len(labels), 1), dtype=bool)
    present[labels[rows.src]] = True
    numbers = (np.cumsum(present) - 1).astype(np.int32)
    clusters = np.empty(len(rows.src), dtype=np.int32)
    run(_look_up, even_chunks(len(clusters), 4), rows.src, numbers[labels], clusters)
    return clusters, int(np.count_nonzero(present))


@kernel
def _look_up(start, stop, src, cluster_of, clusters):
    for e in range(start, stop):
        clusters[e] = cluster_of[src[e]]


@kernel(_nrt=False)
def _place(order, groups, placement, shared):
    """Put each cluster, in order, where it costs least."""
    indptr, members, sizes = groups
    part, table, loads = placement
    num_parts = loads.arcs.shape[0]
    mean_rows = loads.goal_rows.sum() / num_parts
    for i in range(order.shape[0]):
        c = order[i]
        held = indptr[c + 1] - indptr[c]
        shared_parts(table, members, indptr[c], indptr[c + 1], -1, shared)
        best, lowest = -1, np.inf
        for p in range(num_parts):
            cost = cost_in(p, sizes[c], held - shared[p], loads, mean_rows)
            if cost < lowest:
                best, lowest = p, cost
        lift(c, best, 1, held, sizes, shared, loads)
        part[c] = best
        for j in range(indptr[c], indptr[c + 1]):
            add_copy(table, members[j], best)
