"""Merge clusters of edges into parts, balancing arcs and copies at once.

Clusters go, largest first, where they add least: new copies, plus a steep price on the part's arcs and copies over
its share. Then single clusters move while that pays.

Shapes: K clusters, N vertices, P parts, I incidences (a vertex with an edge in a cluster).
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.jit import inline, kernel
from distgnn.partition.copy_table import add_copy, drop_copy, empty_table

LOAD_PRICE = 0.3
POWER = 8
FEWEST_SWEEPS, MOST_SWEEPS = 4, 32
MOST_VISITS = 10**8  # of incidences in all sweeps: on graphs without clusters they are many and bring little
FEW_MOVES = 0.003  # of the clusters: another sweep would not pay
FIRST_GUESS = 1.2  # copies per vertex before any are known


def merge_clusters(
    edge_list, clusters: np.ndarray, num_clusters: int, degrees: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Part [K] int16 of each cluster of rows.

    Args: clusters: [M] int32 from `edge_clusters`; degrees: [N]; shares: [P], see `part_shares`.
    """
    num_parts = len(shares)
    sizes = np.bincount(clusters, minlength=num_clusters).astype(np.float64)
    indptr, members = incidence(edge_list, clusters, num_clusters)
    table = empty_table(degrees, num_parts)
    parts = np.full(num_clusters, -1, dtype=np.int16)
    arcs, rows = np.zeros(num_parts), np.zeros(num_parts)
    biggest_first = np.argsort(-sizes, kind="stable")
    goal_arcs, goal_rows = len(clusters) * shares, FIRST_GUESS * np.count_nonzero(degrees) * shares
    for sweep in range(1 + max(FEWEST_SWEEPS, min(MOST_SWEEPS, MOST_VISITS // max(len(members), 1)))):
        loads = (arcs, rows, goal_arcs, goal_rows)
        moved = _assign(biggest_first, indptr, members, sizes, table, parts, loads)
        goal_rows = rows.sum() * shares
        if sweep and moved < FEW_MOVES * num_clusters:
            break
    return parts


def incidence(edge_list, clusters: np.ndarray, num_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR cluster -> vertices with an edge in it, each once: indptr int64 [K + 1], members [I]."""
    rows = np.argsort(clusters, kind="stable")
    starts = np.zeros(num_clusters + 1, dtype=np.int64)
    np.cumsum(np.bincount(clusters, minlength=num_clusters), out=starts[1:])
    members = np.empty(2 * len(clusters), dtype=edge_list.src.dtype)
    indptr = np.zeros(num_clusters + 1, dtype=np.int64)
    _collect(edge_list.src, edge_list.dst, rows, starts, edge_list.num_nodes, indptr, members)
    return indptr, members[: indptr[-1]].copy()


@kernel
def _collect(src, dst, rows, starts, num_nodes, indptr, members):
    stamp = np.full(num_nodes, -1, dtype=np.int32)
    found = 0
    for c in range(starts.shape[0] - 1):
        for i in range(starts[c], starts[c + 1]):
            e = rows[i]
            for end in range(2):
                v = src[e] if end == 0 else dst[e]
                if stamp[v] != c:
                    stamp[v] = c
                    members[found] = v
                    found += 1
        indptr[c + 1] = found


@inline
def _power(x):
    x2 = x * x
    x4 = x2 * x2
    return x4 * x4


@kernel
def _assign(order, indptr, members, sizes, table, parts, loads):
    """Move each cluster of `order` where it costs least (first: place it); returns how many moved."""
    arcs, rows, goal_arcs, goal_rows = loads
    num_parts = arcs.shape[0]
    mean_rows = goal_rows.sum() / num_parts
    shared = np.empty(num_parts, dtype=np.int64)
    moved = 0
    for i in range(order.shape[0]):
        c = order[i]
        begin, end = indptr[c], indptr[c + 1]
        old = parts[c]
        _count_shared(table, members, begin, end, old, shared)
        if old >= 0:
            arcs[old] -= sizes[c]
            rows[old] -= end - begin - shared[old]
        best, lowest = -1, np.inf
        for p in range(num_parts):
            new_rows = end - begin - shared[p]
            cost = new_rows / mean_rows
            cost += LOAD_PRICE * (_power((arcs[p] + sizes[c]) / goal_arcs[p]) - _power(arcs[p] / goal_arcs[p]))
            cost += LOAD_PRICE * (_power((rows[p] + new_rows) / goal_rows[p]) - _power(rows[p] / goal_rows[p]))
            if cost < lowest or (p == old and cost <= lowest):
                best, lowest = p, cost
        arcs[best] += sizes[c]
        rows[best] += end - begin - shared[best]
        if best != old:
            moved += 1
            parts[c] = best
            for j in range(begin, end):
                if old >= 0:
                    drop_copy(table, members[j], old)
                add_copy(table, members[j], best)
    return moved


@inline
def _count_shared(table, members, begin, end, home, shared):
    """shared[p] = members that other clusters than this one, which is in `home`, hold in part p."""
    shared[:] = 0
    for j in range(begin, end):
        v = members[j]
        for slot in range(table.first[v], table.first[v] + table.used[v]):
            p = table.part[slot]
            if p != home or table.count[slot] > 1:
                shared[p] += 1
