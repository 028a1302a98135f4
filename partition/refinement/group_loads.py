"""What parts have while groups of edges move, and what a group more or less costs there.

A group costs the copies it needs in a part that no other group needs, plus a price on the part's arcs and copies, see
`_price_of`. Prices rise with the load, and faster the higher it is: adding costs no less than the price's slope at the
present load says, and most parts are too expensive by that already (`num_cheaper`).

*Rows*: no part should exchange much more than the others (docs/internals/cmr.md, "What parts exchange"). A copy is
*shared* where other parts have the vertex too:

    goal = 2 * (copies - vertices) * share        excess = sum over parts of goal * max(shared / goal - 1, 0)^2

Moving a group changes the shared copies of more than two parts. Vertex v of the group is elsewhere in part 2 only. With
the group in part 2, v is not shared; anywhere else it is, in that part and in part 2 as well.

Shapes: K groups, P parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.partition.refinement.replica_table import (
    AHEAD,
    COPIES,
    PART_SHIFT,
    CopyTable,
    add_parts_of,
    is_dense,
    num_edges_in,
    prefetch_copies,
)

LOAD_PRICE = 3.0  # at most
WALL, FREE = 30.0, 1.03  # times the price, for the square of the load beyond so much of a part's share
SURELY = 1 - 1e-9  # of a bound: sums that are rounded otherwise are not farther apart

# Copies for each one of the excess; with few parts fewer, because a copy more raises the mean by 2 / P. With 8, one of
# four orders of web-notredame's vertices had 1.48 times the mean in 128 parts; with 32, 1.41.
MOST_PRICE = 16.0
LEAST_GOAL = 16.0  # so few shared copies are no load, whatever other parts have


class Loads(NamedTuple):
    """Edges and copies of each part, and what it is meant to have: float64 [P] each; mean_copies, of `goal_copies`, and
    price of imbalance: float64 [1]; edges_slope, copies_slope: float64 [P], what the next edge and the next copy of
    each part add to its price.

    Goals and `price` follow the copies there are: their sum is known only once all groups are placed.
    """

    edges: np.ndarray
    copies: np.ndarray
    goal_edges: np.ndarray
    goal_copies: np.ndarray
    mean_copies: np.ndarray
    price: np.ndarray
    edges_slope: np.ndarray
    copies_slope: np.ndarray


def start_loads(edges: np.ndarray, copies: np.ndarray, goal_edges: np.ndarray, goal_copies: np.ndarray) -> Loads:
    """Loads at the highest price. Args: all float64 [P]."""
    price, slopes = np.array([LOAD_PRICE]), np.zeros((2, len(edges)))
    loads = Loads(edges, copies, goal_edges, goal_copies, np.empty(1), price, *slopes)
    set_slopes(loads)
    return loads


@kernel(counted=False)
def set_slopes(loads):
    """After a change of goals, of the price or of loads otherwise than by `change_load`."""
    loads.mean_copies[0] = loads.goal_copies.sum() / loads.goal_copies.shape[0]
    for p in range(loads.edges.shape[0]):
        _set_slopes(p, loads)


@inline(counted=False)
def _set_slopes(p, loads):
    loads.edges_slope[p] = _slope_of(loads.edges[p], loads.goal_edges[p], loads.price[0])
    loads.copies_slope[p] = _slope_of(loads.copies[p], loads.goal_copies[p], loads.price[0])


@inline(counted=False)
def _slope_of(load, goal, price):
    """The derivative of `_price_of` by the load itself."""
    units = load / goal
    return price * (4.0 * units * units * units + 2.0 * WALL * max(units - FREE, 0.0)) / goal


@inline(counted=False)
def _price_of(load, price):
    """What a part costs at a load in units of its share: the fourth power of it, steeper beyond `FREE`."""
    square = load * load
    over = max(load - FREE, 0.0)
    return price * (square * square + WALL * over * over)


@inline(counted=False)
def cost_of_adding(p, edges, new_copies, loads, mean_copies):
    """What part p would cost more with these additional edges and copies."""
    cost = new_copies / mean_copies
    load, goal = loads.edges[p], loads.goal_edges[p]
    cost += _price_of((load + edges) / goal, loads.price[0]) - _price_of(load / goal, loads.price[0])
    load, goal = loads.copies[p], loads.goal_copies[p]
    return cost + _price_of((load + new_copies) / goal, loads.price[0]) - _price_of(load / goal, loads.price[0])


@inline(counted=False)
def least_cost(p, edges, new_copies, loads, mean_copies):
    """No more than `cost_of_adding`, by the slopes of part p."""
    return SURELY * (new_copies / mean_copies + edges * loads.edges_slope[p] + new_copies * loads.copies_slope[p])


@inline(counted=False)
def num_cheaper(cost, edges, size, num_present, loads, mean_copies):
    """How many parts that have none of a group's `size` members may cost less than this."""
    found = 0
    # Without a branch, so that it becomes vector instructions: a fiftieth of the time of `cost_of_adding` of all parts.
    for p in range(loads.edges_slope.shape[0]):
        cheaper = least_cost(p, edges, size, loads, mean_copies) < cost
        found += np.int64(num_present[p] == 0) & np.int64(cheaper)
    return found


@inline(counted=False)
def cost_of_keeping(p, edges, own_copies, loads, mean_copies):
    """What part p would cost less without these edges and copies, which it has."""
    cost = own_copies / mean_copies
    load, goal = loads.edges[p], loads.goal_edges[p]
    cost += _price_of(load / goal, loads.price[0]) - _price_of((load - edges) / goal, loads.price[0])
    load, goal = loads.copies[p], loads.goal_copies[p]
    return cost + _price_of(load / goal, loads.price[0]) - _price_of((load - own_copies) / goal, loads.price[0])


@inline(counted=False)
def change_load(p, sign, edges, copies, loads):
    """Take edges and copies out of part p (sign -1), or put them in (1)."""
    loads.edges[p] += sign * edges
    loads.copies[p] += sign * copies
    _set_slopes(p, loads)


class RowLoads(NamedTuple):
    """shared, goal: float64 [P], see above; price: float64 [1], of the excess, 0: rows are no load.

    Of the group that was counted last: single: int32 [P], members that only this part has without the group; outside:
    int64 [1], members that any part has.
    """

    shared: np.ndarray
    goal: np.ndarray
    price: np.ndarray
    single: np.ndarray
    outside: np.ndarray


def no_row_loads(num_parts: int) -> RowLoads:
    """Rows that are no load, until `move_groups` gives them a price."""
    shared, goal = np.zeros((2, num_parts))
    return RowLoads(shared, goal, np.zeros(1), np.zeros(num_parts, np.int32), np.zeros(1, np.int64))


@inline
def with_own_counts(rows):
    """The same loads, with room of its own for what is counted of a group."""
    single, outside = np.empty(rows.single.shape[0], dtype=np.int32), np.empty(1, dtype=np.int64)
    return RowLoads(rows.shared, rows.goal, rows.price, single, outside)


def row_price(num_parts: int) -> float:
    """Copies for each one of the excess."""
    return min(MOST_PRICE, float(num_parts))


def row_goal(copies: float, num_vertices: int, shares: np.ndarray) -> np.ndarray:
    """Shared copies float64 [P] that parts have where all exchange their shares of the rows."""
    return np.maximum(2.0 * (copies - num_vertices) * shares, LEAST_GOAL)


def row_excess(table: CopyTable, num_vertices: int, shares: np.ndarray) -> float:
    """What parts exchange too much, in copies."""
    goal = row_goal(float(table.vertex[:, COPIES].sum()), num_vertices, shares)
    over = np.maximum(shared_copies(table) / goal - 1.0, 0.0)
    return float(row_price(len(shares)) * (goal * over**2).sum())


def shared_copies(table: CopyTable) -> np.ndarray:
    """Copies float64 [P] of each part of vertices that other parts have too."""
    shared = np.zeros(table.num_parts, dtype=np.int64)
    _count_shared(table, shared)
    return shared.astype(np.float64)


@kernel(counted=False)
def _count_shared(table, shared):
    for v in range(table.vertex.shape[0]):
        if table.vertex[v, COPIES] > 1:
            add_parts_of(table, v, -1, shared)


@inline(counted=False)
def row_cost(p, home, num_present, mean_copies, rows):
    """The excess with the group that was counted last, which is in `home`, in part p, in units of `mean_copies` copies.

    What is the same for all parts is left out; of a part that has no member it is at least 0. Args: num_present: of
    `count_present`.
    """
    if rows.price[0] == 0:
        return 0.0
    outside = rows.outside[0]
    # Without the group: at home its members are not shared by it; elsewhere single ones were shared because of it.
    without = rows.shared[p] - (outside - num_present[p] if p == home else rows.single[p])
    # With it in p, against with it in another part: there, single members of p are shared.
    more = _excess(without + (outside - num_present[p]), rows.goal[p]) - _excess(without + rows.single[p], rows.goal[p])
    return rows.price[0] / mean_copies * more


@inline(counted=False)
def _excess(shared, goal):
    over = max(shared / goal - 1.0, 0.0)
    return goal * over * over


@inline(counted=False)
def shift_rows(old, new, num_present, rows):
    """Move the group that was counted last from part `old` to part `new`."""
    rows.shared[old] += rows.single[old] - (rows.outside[0] - num_present[old])
    rows.shared[new] += (rows.outside[0] - num_present[new]) - rows.single[new]


@inline(counted=False)
def count_with_rows(c, home, groups, table, num_present, rows):
    """As `count_present`, of group c, which is in `home`; rows.single and rows.outside become the group's."""
    num_present[:] = 0
    rows.single[:] = 0
    outside, stay, end = 0, 0, groups.indptr[c + 1]
    for j in range(groups.indptr[c], end):
        prefetch_copies(table, groups.members[min(j + AHEAD, end - 1)], groups.members[min(j + 2 * AHEAD, end - 1)])
        v = groups.members[j]
        # One group at home is this one: without it v has no copy there.
        if table.vertex[v, COPIES] == 1:  # at home, like most vertices of a good cut: no look at other parts
            stay += num_edges_in(table, v, home) > 1
            continue
        outside += 1
        add_parts_of(table, v, home, num_present)
        if table.vertex[v, COPIES] == 2 and num_edges_in(table, v, home) == 1:
            rows.single[_other_part(table, v, home)] += 1
    num_present[home] += stay
    rows.single[home] += stay
    rows.outside[0] = outside + stay


@inline(counted=False)
def _other_part(table, v, home):
    """The part that has v, which has two copies, one of them at home."""
    begin = table.first[v]
    if not is_dense(table, v):
        p = table.slots[begin] >> PART_SHIFT
        return p if p != home else table.slots[begin + 1] >> PART_SHIFT
    for p in range(table.num_parts):
        if p != home and table.counts[begin + p] > 0:
            return p
    return home
