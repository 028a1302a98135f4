"""Moves of groups of edges between parts: a group goes where it adds least.

What a group costs in a part: the copies it needs there that no other group needs, plus a price on the part's arcs and
copies, see `_price_of`, and one on what parts exchange, see row_load.py. Groups are visited largest first.

Two ways to visit them. *In turn*: evaluate one group, move it, go on to the next. *In blocks*, for large graphs: a
block of groups is evaluated against frozen parts by all threads, then moves are made in order. One block of three
groups: A = {x, y, z} and B = {x, w} are in part 0, C in part 2; of these vertices, part 1 has y, z and w for other
groups, part 0 none.

1. *Evaluate* against the frozen table. In part 0, A has 2 copies of its own (y and z; x is there for B too); in part 1
   it would need 1 (x): A wants part 1. B has 1 copy of its own (w) and would need 1 (x): a tie, B stays. C wants 1.
2. *Commit* A: priced again, still pays, A moves. B shares x with A and becomes stale: the next sweep visits it, and
   finds that it has 2 copies of its own in part 0 now and would need none in part 1.
3. *Commit* C: priced again with A in part 1. If part 1 is now so full that moving does not pay, C stays and is stale.

Evaluating writes nothing but `wanted`, and commits have a fixed order: the number of threads makes no difference.

Shapes: K groups, N vertices, P parts, I incidences (a vertex with an edge in a group).
Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run, thread_chunks
from distgnn.partition.core.edges import group
from distgnn.partition.moves.block_counts import count_block, count_present
from distgnn.partition.moves.groups import Groups
from distgnn.partition.moves.replica_table import CopyTable, add_edge, remove_edge
from distgnn.partition.moves.row_load import RowLoads, price_rows, set_goal, shared_copies, shift_rows

# A price of imbalance that suits a graph of two copies a vertex would, where one vertex in a hundred has a second one,
# outweigh all that moves could save: so it is a multiple of the copies beyond the first, up to a limit.
EXTRA_PRICE = 2.0  # of a mean part's copies, for each copy beyond the first that a vertex has on average
LOAD_PRICE = 3.0  # at most
WALL, FREE = 30.0, 1.03  # times the price, for the square of the load beyond so much of a part's share
BLOCK_GROUPS = 32  # groups evaluated against the same frozen parts: the fewer, the less they miss of others' moves
MOST_BLOCKS = 4096
FEW_MOVES = 0.003  # of the groups: another sweep would not pay
HUB = 16  # groups around a vertex: with more, one of them that moves hardly changes what the others cost


class Loads(NamedTuple):
    """Edges and copies of each part, and what it is meant to have: float64 [P] each; price of imbalance: float64 [1];
    rows: what parts exchange.

    Goals and `price` follow the copies there are: their sum is known only once all groups are placed.
    """

    edges: np.ndarray
    copies: np.ndarray
    goal_edges: np.ndarray
    goal_copies: np.ndarray
    price: np.ndarray
    rows: RowLoads


class Placement(NamedTuple):
    """part: int16 [K] of each group (-1: none yet); table: in how many groups of each part a vertex is; loads."""

    part: np.ndarray
    table: CopyTable
    loads: Loads


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
    """Move groups while that pays, at most so many sweeps.

    Args: degrees: [N]; how: "in blocks", evaluated in parallel; "in turn", each with all moves before it; after the
        first sweep both only visit groups that share a vertex with one that moved. "all in turn": every sweep visits
        all, because the loads of the parts have changed too. extra_price: of imbalance, see `EXTRA_PRICE`; row_price:
        of exchanging more than others, see row_load.py; 0 "in blocks".
    """
    in_turn = how != "in blocks"
    indptr, members, sizes, _ = groups
    around = _transposed(indptr, members, len(degrees)) if sweeps > 1 else (indptr[:0], members[:0])
    # Groups of size 0 come last and are cut off: they stay where they are.
    largest_first = np.argsort(-sizes, kind="stable").astype(np.int32)[: np.count_nonzero(sizes)]
    stale = np.ones(len(sizes), dtype=np.bool_)
    wanted = np.empty(len(sizes), dtype=np.int16)
    num_present = np.empty(len(shares), dtype=np.int32)
    loads, num_vertices = placement.loads, int(np.count_nonzero(degrees))
    if row_price:
        loads.rows.shared[:] = shared_copies(placement.table)
    for _ in range(sweeps):
        waiting = largest_first[stale[largest_first]]
        stale[:] = how == "all in turn"
        moved = 0
        blocks = 1 if in_turn else min(len(waiting) // BLOCK_GROUPS + 1, MOST_BLOCKS)
        for block in range(blocks):
            # Every blocks-th group, so that each block has large ones first and small ones after them.
            chosen = waiting[block::blocks]
            # Written in place: `placement` holds the same array, which the kernels read.
            loads.goal_copies[:] = loads.copies.sum() * shares
            loads.price[:] = min(LOAD_PRICE, extra_price * (loads.copies.sum() / num_vertices - 1))
            set_goal(loads.rows, row_price, loads.copies.sum(), num_vertices, shares)
            if in_turn:
                moved += _move_in_turn(chosen, groups, placement, wanted, num_present, *around, stale)
            else:
                _evaluate(chosen, groups, placement, wanted)
                moved += _commit(chosen, groups, placement, wanted, num_present, *around, stale)
        if moved < FEW_MOVES * len(sizes):
            break


def _transposed(indptr: np.ndarray, members: np.ndarray, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR vertex -> groups."""
    group_ids = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    order, starts = group(members, num_nodes)
    return starts, group_ids[order]


@inline(_nrt=False)
def _price_of(load: float, price: float) -> float:
    """What a part costs at a load in units of its share: the fourth power of it, steeper beyond `FREE`."""
    square = load * load
    over = max(load - FREE, 0.0)
    return price * (square * square + WALL * over * over)


@inline(_nrt=False)
def _cost_of_adding(p: int, edges: float, new_copies: int, loads: Loads, mean_copies: float) -> float:
    """What part p would cost more with so many more edges and copies."""
    cost = new_copies / mean_copies
    load, goal = loads.edges[p], loads.goal_edges[p]
    cost += _price_of((load + edges) / goal, loads.price[0]) - _price_of(load / goal, loads.price[0])
    load, goal = loads.copies[p], loads.goal_copies[p]
    return cost + _price_of((load + new_copies) / goal, loads.price[0]) - _price_of(load / goal, loads.price[0])


@inline(_nrt=False)
def _cost_of_keeping(p: int, edges: float, own_copies: int, loads: Loads, mean_copies: float) -> float:
    """What part p would cost less without these edges and copies, which it has."""
    cost = own_copies / mean_copies
    load, goal = loads.edges[p], loads.goal_edges[p]
    cost += _price_of(load / goal, loads.price[0]) - _price_of((load - edges) / goal, loads.price[0])
    load, goal = loads.copies[p], loads.goal_copies[p]
    return cost + _price_of(load / goal, loads.price[0]) - _price_of((load - own_copies) / goal, loads.price[0])


@inline(_nrt=False)
def change_load(c: int, p: int, sign: int, size: int, groups: Groups, num_present: np.ndarray, loads: Loads) -> None:
    """Take group c, of `size` members, out of part p (sign -1), or put it in (1)."""
    loads.edges[p] += sign * groups.sizes[c]
    loads.copies[p] += sign * (size - num_present[p])


def _evaluate(chosen: np.ndarray, groups: Groups, placement: Placement, wanted: np.ndarray) -> None:
    """wanted[c] = the part where group c would cost least, for each chosen one."""
    threads = get_num_threads()
    sizes = groups.indptr[chosen + 1] - groups.indptr[chosen]
    if threads * sizes.max(initial=0) <= sizes.sum() or threads == 1:
        dealt = np.concatenate([chosen[i::threads] for i in range(threads)])  # large and small ones to each
        run(_evaluate_groups, thread_chunks(len(chosen)), dealt, groups, placement, wanted)
    else:  # one group would keep a thread when the others are done
        _choose_parts(chosen, groups, placement, count_block(chosen, groups, placement.part, placement.table), wanted)


@kernel
def _evaluate_groups(
    start: int, stop: int, chosen: np.ndarray, groups: Groups, placement: Placement, wanted: np.ndarray
) -> None:
    num_present = np.empty(placement.loads.edges.shape[0], dtype=np.int32)
    for i in range(start, stop):
        _evaluate_group(chosen[i], groups, placement, wanted, num_present)


@inline(_nrt=False)
def _evaluate_group(c: int, groups: Groups, placement: Placement, wanted: np.ndarray, num_present: np.ndarray) -> None:
    count_present(c, placement.part[c], groups, placement.table, num_present)
    wanted[c] = cheapest_part(c, groups, placement, num_present)


@kernel(_nrt=False)
def _choose_parts(
    chosen: np.ndarray, groups: Groups, placement: Placement, present: np.ndarray, wanted: np.ndarray
) -> None:
    for i in range(chosen.shape[0]):
        wanted[chosen[i]] = cheapest_part(chosen[i], groups, placement, present[i])


@inline(_nrt=False)
def cheapest_part(c: int, groups: Groups, placement: Placement, num_present: np.ndarray) -> int:
    """The part where group c would cost least: its own on a tie, the lowest if it has none."""
    edges, home, size = groups.sizes[c], placement.part[c], groups.indptr[c + 1] - groups.indptr[c]
    loads = placement.loads
    num_parts = loads.edges.shape[0]
    mean_copies = loads.goal_copies.sum() / num_parts
    # Costs are finite, so some part is always found.
    best, lowest = home, np.inf
    if home >= 0:
        lowest = _cost_of_keeping(home, edges, size - num_present[home], loads, mean_copies) + loads.rows.cost[home]
    for p in range(num_parts):
        if p != home:
            cost = _cost_of_adding(p, edges, size - num_present[p], loads, mean_copies) + loads.rows.cost[p]
            if cost < lowest:
                best, lowest = p, cost
    return best


@kernel(_nrt=False)
def _commit(
    chosen: np.ndarray,
    groups: Groups,
    placement: Placement,
    wanted: np.ndarray,
    num_present: np.ndarray,
    starts: np.ndarray,
    around: np.ndarray,
    stale: np.ndarray,
) -> int:
    """Make the moves that still pay, in order; returns how many. Groups that share a vertex become stale."""
    part, table, loads = placement
    mean_copies = loads.goal_copies.sum() / loads.edges.shape[0]
    moved = 0
    for i in range(chosen.shape[0]):
        c = chosen[i]
        old, new = part[c], wanted[c]
        if old == new:
            continue
        edges = groups.sizes[c]
        size = count_present(c, old, groups, table, num_present)
        here = _cost_of_keeping(old, edges, size - num_present[old], loads, mean_copies) + loads.rows.cost[old]
        there = _cost_of_adding(new, edges, size - num_present[new], loads, mean_copies) + loads.rows.cost[new]
        if there >= here:
            stale[c] = True
            continue
        moved += 1
        change_load(c, old, -1, size, groups, num_present, loads)
        change_load(c, new, 1, size, groups, num_present, loads)
        if loads.rows.price[0] > 0:
            shift_rows(old, new, num_present, loads.rows)
        part[c] = new
        for j in range(groups.indptr[c], groups.indptr[c + 1]):
            v = groups.members[j]
            remove_edge(table, v, old)
            add_edge(table, v, new)
            # Nothing is around where there is one sweep only: nobody would ask what is stale.
            if around.shape[0] > 0 and starts[v + 1] - starts[v] <= HUB:
                for k in range(starts[v], starts[v + 1]):
                    stale[around[k]] = True
    return moved


@kernel(_nrt=False)
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
    """Evaluate and move one group after the other; returns how many moved."""
    loads, moved = placement.loads, 0
    for i in range(chosen.shape[0]):
        c = chosen[i]
        count_present(c, placement.part[c], groups, placement.table, num_present)
        if loads.rows.price[0] > 0:
            mean_copies = loads.goal_copies.sum() / loads.edges.shape[0]
            price_rows(c, placement.part[c], groups, placement.table, num_present, mean_copies, loads.rows)
        wanted[c] = cheapest_part(c, groups, placement, num_present)
        if wanted[c] != placement.part[c]:
            # Priced once more there, against the same loads, so it always moves: what is needed is the rest of a
            # commit.
            one = chosen[i : i + 1]
            moved += _commit(one, groups, placement, wanted, num_present, starts, around, stale)
    return moved
