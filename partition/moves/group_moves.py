"""Moves of groups of edges between parts: a group goes where it adds least.

What a group costs in a part: the copies it needs there that no other group needs, plus a steep price on the part's arcs
and copies over its share. Groups are visited largest first.

Shapes: K groups, N vertices, P parts, I incidences (a vertex with an edge in a group).
Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run, thread_chunks
from distgnn.partition.core.edges import group
from distgnn.partition.moves.groups import Groups
from distgnn.partition.moves.replica_table import AHEAD, CopyTable, add_copy, ask_for, count_shared, drop_copy

LOAD_PRICE = 0.3
BLOCK_GROUPS = 32  # a block is judged against frozen parts; small ones lose less of what moves would tell
MOST_BLOCKS = 4096
FEW_MOVES = 0.003  # of the groups: another sweep would not pay
HUB = 16  # groups around a vertex beyond which their moves no longer tell each other anything


class Loads(NamedTuple):
    """Rows and copies of each part, and what it is meant to have: float64 [P] each."""

    arcs: np.ndarray
    rows: np.ndarray
    goal_arcs: np.ndarray
    goal_rows: np.ndarray


class Placement(NamedTuple):
    """part: int16 [K] of each group (-1: none yet); table: in how many groups of each part a vertex is; loads."""

    part: np.ndarray
    table: CopyTable
    loads: Loads


def settle(groups: Groups, placement: Placement, shares: np.ndarray, num_nodes: int, sweeps: int, how: str) -> None:
    """Move groups while that pays, at most so many sweeps.

    Args: how: "in blocks", judged in parallel; "in turn", each with all moves before it; after the first sweep both
        only visit groups that share a vertex with one that moved. "all in turn": every sweep visits all, because the
        loads of the parts have changed too.
    """
    in_turn = how != "in blocks"
    indptr, members, sizes, _ = groups
    around = _transposed(indptr, members, num_nodes) if sweeps > 1 else (indptr[:0], members[:0])
    largest_first = np.argsort(-sizes, kind="stable").astype(np.int32)[: np.count_nonzero(sizes)]
    stale = np.ones(len(sizes), dtype=np.bool_)
    wanted = np.empty(len(sizes), dtype=np.int16)
    shared = np.empty(len(shares), dtype=np.int32)
    loads = placement.loads
    for _ in range(sweeps):
        waiting = largest_first[stale[largest_first]]
        stale[:] = how == "all in turn"
        moved = 0
        blocks = 1 if in_turn else min(len(waiting) // BLOCK_GROUPS + 1, MOST_BLOCKS)
        for block in range(blocks):
            chosen = waiting[block::blocks]
            loads.goal_rows[:] = loads.rows.sum() * shares
            if in_turn:
                moved += _move_in_turn(chosen, groups, placement, wanted, shared, *around, stale)
            else:
                threads = get_num_threads()
                dealt = np.concatenate([chosen[i::threads] for i in range(threads)])  # large and small ones to each
                run(_judge, thread_chunks(len(chosen)), dealt, groups, placement, wanted)
                moved += _move(chosen, groups, placement, wanted, shared, *around, stale)
        if moved < FEW_MOVES * len(sizes):
            break


def _transposed(indptr, members, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR vertex -> groups."""
    owners = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    order, starts = group(members, num_nodes)
    return starts, owners[order]


@inline(_nrt=False)
def _power(x):
    x2 = x * x
    x4 = x2 * x2
    return x4 * x4


@inline(_nrt=False)
def cost_in(p, rows, new_rows, loads, mean_rows):
    """What `rows` more rows and `new_rows` more copies cost in part p."""
    cost = new_rows / mean_rows
    arcs, goal = loads.arcs[p], loads.goal_arcs[p]
    cost += LOAD_PRICE * (_power((arcs + rows) / goal) - _power(arcs / goal))
    copies, goal = loads.rows[p], loads.goal_rows[p]
    return cost + LOAD_PRICE * (_power((copies + new_rows) / goal) - _power(copies / goal))


@inline(_nrt=False)
def lift(c, p, sign, held, sizes, shared, loads):
    """Take cluster c out of part p (sign -1), or put it in."""
    loads.arcs[p] += sign * sizes[c]
    loads.rows[p] += sign * (held - shared[p])


@kernel
def _judge(start, stop, chosen, groups, placement, wanted):
    """wanted[c] = the part where group c would cost least, its own on a tie."""
    shared = np.empty(placement.loads.arcs.shape[0], dtype=np.int32)
    _judge_each(start, stop, chosen, groups, placement, wanted, shared)


@inline(_nrt=False)
def _judge_each(start, stop, chosen, groups, placement, wanted, shared):
    indptr, members, sizes, _ = groups
    part, table, loads = placement
    num_parts = loads.arcs.shape[0]
    mean_rows = loads.goal_rows.sum() / num_parts
    for i in range(start, stop):
        c = chosen[i]
        held, home = indptr[c + 1] - indptr[c], part[c]
        shared_parts(table, members, indptr[c], indptr[c + 1], home, shared)
        best, lowest = home, _at_home(home, sizes[c], held - shared[home], loads, mean_rows)
        for p in range(num_parts):
            if p != home:
                cost = cost_in(p, sizes[c], held - shared[p], loads, mean_rows)
                if cost < lowest:
                    best, lowest = p, cost
        wanted[c] = best


@inline(_nrt=False)
def _at_home(p, rows, new_rows, loads, mean_rows):
    """What a group costs in the part where it is."""
    cost = new_rows / mean_rows
    arcs, goal = loads.arcs[p], loads.goal_arcs[p]
    cost += LOAD_PRICE * (_power(arcs / goal) - _power((arcs - rows) / goal))
    copies, goal = loads.rows[p], loads.goal_rows[p]
    return cost + LOAD_PRICE * (_power(copies / goal) - _power((copies - new_rows) / goal))


@kernel(_nrt=False)
def _move(chosen, groups, placement, wanted, shared, starts, around, stale):
    """Make the moves that still pay, in order; returns how many. Groups that share a vertex become stale."""
    indptr, members, sizes, _ = groups
    part, table, loads = placement
    num_parts = loads.arcs.shape[0]
    mean_rows = loads.goal_rows.sum() / num_parts
    moved = 0
    for i in range(chosen.shape[0]):
        c = chosen[i]
        old, new = part[c], wanted[c]
        if old == new:
            continue
        held = indptr[c + 1] - indptr[c]
        shared_parts(table, members, indptr[c], indptr[c + 1], old, shared)
        here = _at_home(old, sizes[c], held - shared[old], loads, mean_rows)
        if cost_in(new, sizes[c], held - shared[new], loads, mean_rows) >= here:
            stale[c] = True
            continue
        moved += 1
        lift(c, old, -1, held, sizes, shared, loads)
        lift(c, new, 1, held, sizes, shared, loads)
        part[c] = new
        for j in range(indptr[c], indptr[c + 1]):
            v = members[j]
            drop_copy(table, v, old)
            add_copy(table, v, new)
            if around.shape[0] > 0 and starts[v + 1] - starts[v] <= HUB:
                for k in range(starts[v], starts[v + 1]):
                    stale[around[k]] = True
    return moved


@kernel(_nrt=False)
def _move_in_turn(chosen, groups, placement, wanted, shared, starts, around, stale):
    """Judge and move one group after the other; returns how many moved."""
    moved = 0
    for i in range(chosen.shape[0]):
        _judge_each(i, i + 1, chosen, groups, placement, wanted, shared)
        if wanted[chosen[i]] != placement.part[chosen[i]]:
            one = chosen[i : i + 1]
            moved += _move(one, groups, placement, wanted, shared, starts, around, stale)
    return moved


@inline(_nrt=False)
def shared_parts(table, members, begin, end, home, shared):
    """shared[p] = members that other groups than this one, which is in `home`, hold in part p."""
    shared[:] = 0
    for j in range(begin, end):
        ask_for(table, members[min(j + AHEAD, end - 1)], members[min(j + 2 * AHEAD, end - 1)])
        count_shared(table, members[j], home, shared)
