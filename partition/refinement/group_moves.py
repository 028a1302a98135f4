"""Moves of groups of edges between parts: a group goes where it adds least.

A group costs a part copies, and a price on its arcs, copies and exchange, see group_loads.py. Groups are
visited largest first, in one of two ways. *In turn*: a group that wants to move sees all moves before it. *In blocks*,
for large graphs: all threads evaluate a block of groups against frozen parts, then moves that still pay are made in
order. A group that shares a vertex with one that moved is stale: the next sweep visits it.

Evaluating writes nothing but `wanted`, and commits have a fixed order: the number of threads makes no difference.

Shapes: K groups, N vertices, P parts, I incidences (a vertex with an edge in a group).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run, thread_chunks
from distgnn.partition.core.edges import group
from distgnn.partition.refinement.group_loads import (
    LOAD_PRICE,
    Loads,
    RowLoads,
    change_load,
    cost_of_adding,
    cost_of_keeping,
    count_with_rows,
    least_cost,
    num_cheaper,
    row_cost,
    row_goal,
    set_slopes,
    shared_copies,
    shift_rows,
    with_own_counts,
)
from distgnn.partition.refinement.groups import Groups, count_block, count_present, cut_blocks
from distgnn.partition.refinement.replica_table import CopyTable, add_edge, remove_edge

# A price of imbalance that suits a graph of two copies a vertex would, where one vertex in a hundred has a second one,
# outweigh all that moves could save: so it is a multiple of the copies beyond the first, up to a limit.
EXTRA_PRICE = 2.0  # of a mean part's copies, for each copy beyond the first that a vertex has on average
BLOCK_GROUPS = 32  # groups evaluated against the same frozen parts: the fewer, the less they miss of others' moves
MOST_BLOCKS = 4096
FEW_MOVES = 0.003  # of the groups: another sweep would not pay
HUB = 16  # groups around a vertex: with more, one of them that moves hardly changes what the others cost


class Placement(NamedTuple):
    """part: int16 [K] of each group (-1: none yet); table: in how many groups of each part a vertex is; loads, and
    rows: what parts have and exchange."""

    part: np.ndarray
    table: CopyTable
    loads: Loads
    rows: RowLoads


def move_groups(
    groups: Groups,
    placement: Placement,
    shares: np.ndarray,
    degrees: np.ndarray,
    sweeps: int,
    how: str,
    extra_price: float = EXTRA_PRICE,
    row_price: float = 0.0,
) -> None:
    """Move groups while that pays, up to a number of sweeps.

    Args: degrees: [N]; how: "in blocks", evaluated in parallel; "in turn", each that wants to move after all
        moves before it; after the first sweep both only visit groups that share a vertex with one that moved. "all in
        turn": every sweep visits all, because the loads of the parts have changed too. extra_price: of
        imbalance, see `EXTRA_PRICE`; row_price: of exchanging more than others, see group_loads.py; 0 "in blocks".
    """
    in_turn = how != "in blocks"
    indptr, members, sizes, _ = groups
    around = _transposed(indptr, members, len(degrees)) if sweeps > 1 else (indptr[:0], members[:0])
    # Groups of size 0 come last and are cut off: they stay where they are.
    largest_first = np.argsort(-sizes, kind="stable").astype(np.int32)[: np.count_nonzero(sizes)]
    stale = np.ones(len(sizes), dtype=np.bool_)
    wanted = np.empty(len(sizes), dtype=np.int16)
    num_present = np.empty(len(shares), dtype=np.int32)
    loads, rows, num_vertices = placement.loads, placement.rows, int(np.count_nonzero(degrees))
    if row_price:
        rows.shared[:] = shared_copies(placement.table)
    for _ in range(sweeps):
        waiting = largest_first if how == "all in turn" else largest_first[stale[largest_first]]
        if not in_turn:
            stale[:] = False
        moved = 0
        blocks = 1 if in_turn else min(len(waiting) // BLOCK_GROUPS + 1, MOST_BLOCKS)
        for block in range(blocks):
            # Every blocks-th group, so that each block has large ones first and small ones after them.
            chosen = waiting[block::blocks]
            # Written in place: `placement` holds the same array, which the kernels read.
            loads.goal_copies[:] = loads.copies.sum() * shares
            loads.price[:] = min(LOAD_PRICE, extra_price * (loads.copies.sum() / num_vertices - 1))
            rows.price[0] = row_price
            rows.goal[:] = row_goal(loads.copies.sum(), num_vertices, shares)
            set_slopes(loads)
            if in_turn:
                moved += _move_in_turn(chosen, groups, placement, wanted, num_present, *around, stale)
            else:
                _evaluate(chosen, groups, placement, wanted)
                moved += _commit(chosen, groups, placement, wanted, num_present, *around, stale)
        if moved < FEW_MOVES * len(sizes):
            break


def _transposed(indptr: np.ndarray, members: np.ndarray, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    group_ids = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    order, starts = group(members, num_nodes)
    return starts, group_ids[order]


def _evaluate(chosen: np.ndarray, groups: Groups, placement: Placement, wanted: np.ndarray) -> None:
    """wanted[c] = the part where group c would cost least, for each chosen one."""
    threads = get_num_threads()
    sizes = groups.indptr[chosen + 1] - groups.indptr[chosen]
    if threads * sizes.max(initial=0) <= sizes.sum() or threads == 1:
        run(_evaluate_groups, thread_chunks(len(chosen)), _dealt(chosen), groups, placement, wanted)
    else:  # one group would keep a thread when the others are done
        _choose_parts(chosen, groups, placement, count_block(chosen, groups, placement.part, placement.table), wanted)


def _dealt(chosen: np.ndarray) -> np.ndarray:
    """The same groups, large and small ones for each thread."""
    threads = get_num_threads()
    return chosen if threads == 1 else np.concatenate([chosen[i::threads] for i in range(threads)])


@kernel
def _evaluate_groups(start, stop, chosen, groups, placement, wanted):
    part, table, loads, rows = placement
    num_present = np.empty(loads.edges.shape[0], dtype=np.int32)
    # What a group has elsewhere is written down where no other thread does.
    own = Placement(part, table, loads, with_own_counts(rows))
    for i in range(start, stop):
        _evaluate_group(chosen[i], groups, own, wanted, num_present)


@inline(counted=False)
def _evaluate_group(c, groups, placement, wanted, num_present):
    if placement.rows.price[0] > 0:
        count_with_rows(c, placement.part[c], groups, placement.table, num_present, placement.rows)
    else:
        count_present(c, placement.part[c], groups, placement.table, num_present)
    wanted[c] = cheapest_part(c, groups, placement, num_present)


@kernel(counted=False)
def _choose_parts(chosen, groups, placement, present, wanted):
    for i in range(chosen.shape[0]):
        wanted[chosen[i]] = cheapest_part(chosen[i], groups, placement, present[i])


@inline(counted=False)
def cheapest_part(c, groups, placement, num_present):
    """The part where group c would cost least: its own on a tie, the lowest if it has none."""
    edges, home, size = groups.sizes[c], placement.part[c], groups.indptr[c + 1] - groups.indptr[c]
    loads, rows = placement.loads, placement.rows
    num_parts = loads.edges.shape[0]
    mean_copies = loads.mean_copies[0]
    best, lowest = home, np.inf
    if home >= 0:
        lowest = cost_of_keeping(home, edges, size - num_present[home], loads, mean_copies)
        lowest += row_cost(home, home, num_present, mean_copies, rows)
    # Parts that have a member first, in most cases one to three. Costs are finite, so some part is always found.
    for p in range(num_parts):
        if num_present[p] > 0 and p != home:
            cost = cost_of_adding(p, edges, size - num_present[p], loads, mean_copies)
            cost += row_cost(p, home, num_present, mean_copies, rows)
            if cost < lowest:
                best, lowest = p, cost
    if num_cheaper(lowest, edges, size, num_present, loads, mean_copies) == 0:
        return best
    for p in range(num_parts):
        if num_present[p] == 0 and p != home and least_cost(p, edges, size, loads, mean_copies) < lowest:
            cost = cost_of_adding(p, edges, size, loads, mean_copies)
            cost += row_cost(p, home, num_present, mean_copies, rows)
            if cost < lowest:
                best, lowest = p, cost
    return best


@kernel(counted=False)
def _commit(chosen, groups, placement, wanted, num_present, starts, around, stale):
    """Make the moves that still pay, in order; returns how many. Groups that share a vertex become stale."""
    part, table, loads, rows = placement
    mean_copies = loads.mean_copies[0]
    moved = 0
    for i in range(chosen.shape[0]):
        c = chosen[i]
        old, new = part[c], wanted[c]
        if old == new:
            continue
        edges = groups.sizes[c]
        size = count_present(c, old, groups, table, num_present)
        here = cost_of_keeping(old, edges, size - num_present[old], loads, mean_copies)
        here += row_cost(old, old, num_present, mean_copies, rows)
        there = cost_of_adding(new, edges, size - num_present[new], loads, mean_copies)
        there += row_cost(new, old, num_present, mean_copies, rows)
        if there >= here:
            stale[c] = True
            continue
        moved += 1
        change_load(old, -1, edges, size - num_present[old], loads)
        change_load(new, 1, edges, size - num_present[new], loads)
        if rows.price[0] > 0:
            shift_rows(old, new, num_present, rows)
        part[c] = new
        for j in range(groups.indptr[c], groups.indptr[c + 1]):
            v = groups.members[j]
            remove_edge(table, v, old)
            add_edge(table, v, new, 1)
            # Nothing is around where there is one sweep only: nobody would ask what is stale.
            if around.shape[0] > 0 and starts[v + 1] - starts[v] <= HUB:
                for k in range(starts[v], starts[v + 1]):
                    stale[around[k]] = True
    return moved


def _move_in_turn(
    chosen: np.ndarray,
    groups: Groups,
    placement: Placement,
    wanted: np.ndarray,
    num_present: np.ndarray,
    starts: np.ndarray,
    around: np.ndarray,
    stale: np.ndarray,
) -> int:
    """Move one group after the other; returns how many moved.

    All threads ask the groups of a block first. Of those that want to stay, only who shares a vertex with one that has
    moved since is asked again: on loads alone little changes within a block.
    """
    moved = 0
    for first, end in itertools.pairwise(cut_blocks(chosen, groups)):
        block = chosen[first:end]
        stale[block] = False
        run(_evaluate_groups, thread_chunks(len(block)), _dealt(block), groups, placement, wanted)
        moved += _commit_in_turn(block, groups, placement, wanted, num_present, starts, around, stale)
    return moved


@kernel(counted=False)
def _commit_in_turn(chosen, groups, placement, wanted, num_present, starts, around, stale):
    """Evaluate once more and move, one after the other, the groups that wanted to; returns how many moved."""
    moved = 0
    for i in range(chosen.shape[0]):
        c = chosen[i]
        if wanted[c] == placement.part[c] and not stale[c]:
            continue
        stale[c] = False
        _evaluate_group(c, groups, placement, wanted, num_present)
        if wanted[c] != placement.part[c]:
            # Priced once more there, against the same loads, so it always moves: what is needed is the rest of a
            # commit.
            one = chosen[i : i + 1]
            moved += _commit(one, groups, placement, wanted, num_present, starts, around, stale)
    return moved
