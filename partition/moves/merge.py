"""Merge clusters of edges into parts, balancing arcs and copies at once.

Clusters go, largest first, where they add least: new copies, plus a steep price on the part's arcs and copies over
its share. Then single clusters move while that pays.

Shapes: K clusters, N vertices, P parts.
Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.partition.moves.group_moves import Loads, Placement, cost_in, lift, settle, shared_parts
from distgnn.partition.moves.groups import Groups, add_members, groups_of
from distgnn.partition.moves.replica_table import CopyTable, add_copy, empty_table

IN_TURN = 10**6  # incidences up to which clusters are judged one after the other; beyond, one sweep in blocks must do


class How(NamedTuple):
    """sweeps: most sweeps of moves in graphs of few incidences; first_guess: copies per vertex before any are known."""

    sweeps: int
    first_guess: float


HOW = How(32, 1.2)


def merge_clusters(
    edge_list, clusters: np.ndarray, num_clusters: int, degrees: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, CopyTable]:
    """Part [K] int16 of each cluster of rows, and the table of the cut.

    Args: clusters: [M] int32 from `edge_clusters`; degrees: [N]; shares: [P], see `part_shares`.
    """
    groups = groups_of(edge_list, clusters, num_clusters)
    return merge_groups(groups, degrees, shares, (edge_list.num_nodes, len(clusters)))


def merge_groups(
    groups: Groups, degrees: np.ndarray, shares: np.ndarray, sizes: tuple[int, int], how=HOW
) -> tuple[np.ndarray, CopyTable]:
    """Part [K] int16 of each group of rows, and the table of the cut.

    Args: degrees: [N]; shares: [P]; sizes: N and M; how: see `How`.
    """
    num_parts, (num_nodes, num_rows) = len(shares), sizes
    guess = how.first_guess * np.count_nonzero(degrees) * shares
    loads = Loads(np.zeros(num_parts), np.zeros(num_parts), num_rows * shares, guess)
    parts = np.full(len(groups.sizes), -1, dtype=np.int16)
    placement = Placement(parts, empty_table(degrees, num_parts), loads)
    largest_first = np.argsort(-groups.sizes, kind="stable").astype(np.int32)
    _place(largest_first, groups, placement, np.empty(num_parts, dtype=np.int32))
    sweeps, turns = (how.sweeps, "all in turn") if len(groups.members) <= IN_TURN else (1, "in blocks")
    settle(groups, placement, shares, num_nodes, sweeps, turns)
    del placement
    table = empty_table(degrees, num_parts)
    add_members(groups, parts, degrees, table)
    return parts, table


def edge_clusters(rows, labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Cluster [M] int32 of each row, the one of its source (its lower-degree end), and their number K.

    Args: rows: from `ordered_edges`; labels: [N], the label of each vertex. Clusters are numbered without gaps.
    """
    present = np.zeros(max(len(labels), 1), dtype=bool)
    _note(rows.src, labels, present)
    numbers = (np.cumsum(present) - 1).astype(np.int32)
    clusters = np.empty(len(rows.src), dtype=np.int32)
    run(look_up, even_chunks(len(clusters), 4), rows.src, numbers[labels], clusters)
    return clusters, int(np.count_nonzero(present))


@kernel(_nrt=False)
def _note(src, labels, present):
    """present[l] = whether a row has the label l at its source; rows are sorted."""
    for e in range(src.shape[0]):
        if e == 0 or src[e] != src[e - 1]:
            present[labels[src[e]]] = True


@kernel
def look_up(start, stop, keys, values, found):
    """found[i] = values[keys[i]]."""
    for i in range(start, stop):
        found[i] = values[keys[i]]


@kernel(_nrt=False)
def _place(order, groups, placement, shared):
    """Put each cluster, in order, where it costs least."""
    indptr, members, sizes, _ = groups
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
