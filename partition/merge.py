"""Merge clusters of edges into parts, balancing arcs and copies at once.

Clusters go, largest first, where they add least: new copies, plus a steep price on the part's arcs and copies over
its share. Then single clusters move while that pays.

Shapes: K clusters, N vertices, P parts, I incidences (a vertex with an edge in a cluster).
Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.jit import inline, kernel
from distgnn.kernels.threads import even_chunks, run
from distgnn.partition.book import group
from distgnn.partition.copy_table import AHEAD, add_copy, ask_for, count_shared, drop_copy, empty_table

LOAD_PRICE = 0.3
POWER = 8
MOST_SWEEPS = 32
BLOCK_CLUSTERS = 32  # a block is judged against frozen parts; small ones lose less of what moves would tell
MOST_BLOCKS = 4096
IN_TURN = 10**6  # incidences up to which clusters are judged one after the other, each with all moves before it
MOST_VISITS = 0.25  # of incidences for each row, in all sweeps: on graphs without clusters they bring little
FEW_MOVES = 0.003  # of the clusters: another sweep would not pay
FIRST_GUESS = 1.2  # copies per vertex before any are known
HUB = 16  # clusters around a vertex beyond which their moves no longer tell each other anything


class Loads(NamedTuple):
    """Rows and copies of each part, and what it is meant to have: float64 [P] each."""

    arcs: np.ndarray
    rows: np.ndarray
    goal_arcs: np.ndarray
    goal_rows: np.ndarray


def merge_clusters(
    edge_list, clusters: np.ndarray, num_clusters: int, degrees: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Part [K] int16 of each cluster of rows.

    Args: clusters: [M] int32 from `edge_clusters`; degrees: [N]; shares: [P], see `part_shares`.
    Notes: in large graphs, after the first sweep, a cluster is visited only if one that shares a vertex with it has
        moved since; in small ones (`IN_TURN`) always, because the loads of the parts have changed too.
    """
    num_parts = len(shares)
    sizes = np.bincount(clusters, minlength=num_clusters).astype(np.float64)
    indptr, members = incidence(edge_list, clusters, num_clusters)
    around = _transposed(indptr, members, edge_list.num_nodes)
    table = empty_table(degrees, num_parts)
    parts = np.full(num_clusters, -1, dtype=np.int16)
    guess = FIRST_GUESS * np.count_nonzero(degrees) * shares
    loads = Loads(np.zeros(num_parts), np.zeros(num_parts), len(clusters) * shares, guess)
    shared = np.empty(num_parts, dtype=np.int32)
    biggest_first = np.argsort(-sizes, kind="stable").astype(np.int32)
    _place(biggest_first, indptr, members, sizes, table, parts, loads, shared)
    stale = np.ones(num_clusters, dtype=np.bool_)
    wanted = np.empty(num_clusters, dtype=np.int16)
    in_turn = len(members) <= IN_TURN
    visits = MOST_SWEEPS * len(members) if in_turn else MOST_VISITS * len(clusters)
    for _ in range(MOST_SWEEPS):
        waiting = biggest_first[stale[biggest_first]]
        stale[:] = in_turn
        moved = 0
        blocks = 1 if in_turn else min(len(waiting) // BLOCK_CLUSTERS + 1, MOST_BLOCKS)
        for block in range(blocks):
            chosen = waiting[block::blocks]
            loads.goal_rows[:] = loads.rows.sum() * shares
            args = (chosen, indptr, members, sizes, table, parts, loads, wanted)
            if in_turn:
                moved += _move_in_turn(*args, shared, *around, stale)
            else:
                run(_judge, even_chunks(len(chosen), 1024), *args)
                moved += _move(*args, shared, *around, stale)
        visits -= int((indptr[waiting + 1] - indptr[waiting]).sum())
        if moved < FEW_MOVES * num_clusters or visits < 0:
            break
    return parts


def _transposed(indptr, members, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR vertex -> clusters."""
    owners = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    order, starts = group(members, num_nodes)
    return starts, owners[order]


def edge_clusters(rows, labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Cluster [M] int32 of each row, the one of its source (its lower-degree end), and their number K.

    Args: rows: from `ordered_rows`; labels: [N], the label of each vertex. Clusters are numbered without gaps.
    """
    present = np.zeros(max(len(labels), 1), dtype=bool)
    present[labels[rows.src]] = True
    numbers = (np.cumsum(present) - 1).astype(np.int32)
    return numbers[labels][rows.src], int(np.count_nonzero(present))


def incidence(edge_list, clusters: np.ndarray, num_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR cluster -> vertices with an edge in it, each once: indptr int64 [K + 1], members [I]."""
    rows, starts = group(clusters, num_clusters)
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


@inline(_nrt=False)
def _power(x):
    x2 = x * x
    x4 = x2 * x2
    return x4 * x4


@inline(_nrt=False)
def _cost(p, rows, new_rows, loads, mean_rows):
    """What `rows` more rows and `new_rows` more copies cost in part p."""
    cost = new_rows / mean_rows
    arcs, goal = loads.arcs[p], loads.goal_arcs[p]
    cost += LOAD_PRICE * (_power((arcs + rows) / goal) - _power(arcs / goal))
    copies, goal = loads.rows[p], loads.goal_rows[p]
    return cost + LOAD_PRICE * (_power((copies + new_rows) / goal) - _power(copies / goal))


@inline(_nrt=False)
def _lift(c, p, sign, held, sizes, shared, loads):
    """Take cluster c out of part p (sign -1), or put it in."""
    loads.arcs[p] += sign * sizes[c]
    loads.rows[p] += sign * (held - shared[p])


@kernel(_nrt=False)
def _place(order, indptr, members, sizes, table, parts, loads, shared):
    """Put each cluster, in order, where it costs least."""
    num_parts = loads.arcs.shape[0]
    mean_rows = loads.goal_rows.sum() / num_parts
    for i in range(order.shape[0]):
        c = order[i]
        held = indptr[c + 1] - indptr[c]
        _shared_parts(table, members, indptr[c], indptr[c + 1], -1, shared)
        best, lowest = -1, np.inf
        for p in range(num_parts):
            cost = _cost(p, sizes[c], held - shared[p], loads, mean_rows)
            if cost < lowest:
                best, lowest = p, cost
        _lift(c, best, 1, held, sizes, shared, loads)
        parts[c] = best
        for j in range(indptr[c], indptr[c + 1]):
            add_copy(table, members[j], best)


@kernel
def _judge(start, stop, chosen, indptr, members, sizes, table, parts, loads, wanted):
    """wanted[c] = the part where cluster c would cost least, its own on a tie."""
    shared = np.empty(loads.arcs.shape[0], dtype=np.int32)
    _judge_each(start, stop, chosen, indptr, members, sizes, table, parts, loads, wanted, shared)


@inline(_nrt=False)
def _judge_each(start, stop, chosen, indptr, members, sizes, table, parts, loads, wanted, shared):
    num_parts = loads.arcs.shape[0]
    mean_rows = loads.goal_rows.sum() / num_parts
    for i in range(start, stop):
        c = chosen[i]
        held, home = indptr[c + 1] - indptr[c], parts[c]
        _shared_parts(table, members, indptr[c], indptr[c + 1], home, shared)
        best, lowest = home, _at_home(home, sizes[c], held - shared[home], loads, mean_rows)
        for p in range(num_parts):
            if p != home:
                cost = _cost(p, sizes[c], held - shared[p], loads, mean_rows)
                if cost < lowest:
                    best, lowest = p, cost
        wanted[c] = best


@inline(_nrt=False)
def _at_home(p, rows, new_rows, loads, mean_rows):
    """What a cluster costs in the part where it is."""
    cost = new_rows / mean_rows
    arcs, goal = loads.arcs[p], loads.goal_arcs[p]
    cost += LOAD_PRICE * (_power(arcs / goal) - _power((arcs - rows) / goal))
    copies, goal = loads.rows[p], loads.goal_rows[p]
    return cost + LOAD_PRICE * (_power(copies / goal) - _power((copies - new_rows) / goal))


@kernel(_nrt=False)
def _move(chosen, indptr, members, sizes, table, parts, loads, wanted, shared, starts, around, stale):
    """Make the moves that still pay, in order; returns how many. Clusters that share a vertex become stale."""
    num_parts = loads.arcs.shape[0]
    mean_rows = loads.goal_rows.sum() / num_parts
    moved = 0
    for i in range(chosen.shape[0]):
        c = chosen[i]
        old, new = parts[c], wanted[c]
        if old == new:
            continue
        held = indptr[c + 1] - indptr[c]
        _shared_parts(table, members, indptr[c], indptr[c + 1], old, shared)
        here = _at_home(old, sizes[c], held - shared[old], loads, mean_rows)
        if _cost(new, sizes[c], held - shared[new], loads, mean_rows) >= here:
            stale[c] = True
            continue
        moved += 1
        _lift(c, old, -1, held, sizes, shared, loads)
        _lift(c, new, 1, held, sizes, shared, loads)
        parts[c] = new
        for j in range(indptr[c], indptr[c + 1]):
            v = members[j]
            drop_copy(table, v, old)
            add_copy(table, v, new)
            if starts[v + 1] - starts[v] <= HUB:
                for k in range(starts[v], starts[v + 1]):
                    stale[around[k]] = True
    return moved


@kernel(_nrt=False)
def _move_in_turn(chosen, indptr, members, sizes, table, parts, loads, wanted, shared, starts, around, stale):
    """Judge and move one cluster after the other; returns how many moved."""
    moved = 0
    for i in range(chosen.shape[0]):
        _judge_each(i, i + 1, chosen, indptr, members, sizes, table, parts, loads, wanted, shared)
        if wanted[chosen[i]] != parts[chosen[i]]:
            one = chosen[i : i + 1]
            moved += _move(one, indptr, members, sizes, table, parts, loads, wanted, shared, starts, around, stale)
    return moved


@inline(_nrt=False)
def _shared_parts(table, members, begin, end, home, shared):
    """shared[p] = members that other clusters than this one, which is in `home`, hold in part p."""
    shared[:] = 0
    for j in range(begin, end):
        ask_for(table, members[min(j + AHEAD, end - 1)], members[min(j + 2 * AHEAD, end - 1)])
        count_shared(table, members[j], home, shared)
