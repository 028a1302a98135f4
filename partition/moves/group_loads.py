"""What parts have while groups of edges move, and what a group more or less costs there.

A group costs the copies it needs in a part that no other group needs, plus a price on the part's arcs and copies, see
`_price_of`. Prices rise with the load, and faster the higher it is: adding costs no less than the price's slope at the
present load says, and most parts are too expensive by that already (`num_cheaper`).

Shapes: K groups, P parts.
Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.partition.moves.row_load import RowLoads, no_row_loads

LOAD_PRICE = 3.0  # at most
WALL, FREE = 30.0, 1.03  # times the price, for the square of the load beyond so much of a part's share
SURELY = 1 - 1e-9  # of a bound: sums that are rounded otherwise are not farther apart


class Loads(NamedTuple):
    """Edges and copies of each part, and what it is meant to have: float64 [P] each; mean_copies, of `goal_copies`, and
    price of imbalance: float64 [1]; rows: what parts exchange; edges_slope, copies_slope: float64 [P], what the next
    edge and the next copy of each part add to its price.

    Goals and `price` follow the copies there are: their sum is known only once all groups are placed.
    """

    edges: np.ndarray
    copies: np.ndarray
    goal_edges: np.ndarray
    goal_copies: np.ndarray
    mean_copies: np.ndarray
    price: np.ndarray
    rows: RowLoads
    edges_slope: np.ndarray
    copies_slope: np.ndarray


def start_loads(edges: np.ndarray, copies: np.ndarray, goal_edges: np.ndarray, goal_copies: np.ndarray) -> Loads:
    """Loads at the highest price, rows without any. Args: all float64 [P]."""
    price, slopes = np.array([LOAD_PRICE]), np.zeros((2, len(edges)))
    loads = Loads(edges, copies, goal_edges, goal_copies, np.empty(1), price, no_row_loads(len(edges)), *slopes)
    set_slopes(loads)
    return loads


@inline
def with_rows(loads, rows):
    """The same loads, but for rows."""
    return Loads(
        loads.edges,
        loads.copies,
        loads.goal_edges,
        loads.goal_copies,
        loads.mean_copies,
        loads.price,
        rows,
        loads.edges_slope,
        loads.copies_slope,
    )


@kernel(_nrt=False)
def set_slopes(loads):
    """After a change of goals, of the price or of loads otherwise than by `change_load`."""
    loads.mean_copies[0] = loads.goal_copies.sum() / loads.goal_copies.shape[0]
    for p in range(loads.edges.shape[0]):
        _set_slopes(p, loads)


@inline(_nrt=False)
def _set_slopes(p, loads):
    loads.edges_slope[p] = _slope_of(loads.edges[p], loads.goal_edges[p], loads.price[0])
    loads.copies_slope[p] = _slope_of(loads.copies[p], loads.goal_copies[p], loads.price[0])


@inline(_nrt=False)
def _slope_of(load, goal, price):
    """The derivative of `_price_of` by the load itself."""
    units = load / goal
    return price * (4.0 * units * units * units + 2.0 * WALL * max(units - FREE, 0.0)) / goal


@inline(_nrt=False)
def _price_of(load, price):
    """What a part costs at a load in units of its share: the fourth power of it, steeper beyond `FREE`."""
    square = load * load
    over = max(load - FREE, 0.0)
    return price * (square * square + WALL * over * over)


@inline(_nrt=False)
def cost_of_adding(p, edges, new_copies, loads, mean_copies):
    """What part p would cost more with so many more edges and copies."""
    cost = new_copies / mean_copies
    load, goal = loads.edges[p], loads.goal_edges[p]
    cost += _price_of((load + edges) / goal, loads.price[0]) - _price_of(load / goal, loads.price[0])
    load, goal = loads.copies[p], loads.goal_copies[p]
    return cost + _price_of((load + new_copies) / goal, loads.price[0]) - _price_of(load / goal, loads.price[0])


@inline(_nrt=False)
def least_cost(p, edges, new_copies, loads, mean_copies):
    """No more than `cost_of_adding`, by the slopes of part p."""
    return SURELY * (new_copies / mean_copies + edges * loads.edges_slope[p] + new_copies * loads.copies_slope[p])


@inline(_nrt=False)
def num_cheaper(cost, edges, size, num_present, loads, mean_copies):
    """How many parts that have none of a group's `size` members may cost less than this."""
    found = 0
    # Without a branch, so that it becomes vector instructions: a fiftieth of the time of `cost_of_adding` of all parts.
    for p in range(loads.edges_slope.shape[0]):
        cheaper = least_cost(p, edges, size, loads, mean_copies) < cost
        found += np.int64(num_present[p] == 0) & np.int64(cheaper)
    return found


@inline(_nrt=False)
def cost_of_keeping(p, edges, own_copies, loads, mean_copies):
    """What part p would cost less without these edges and copies, which it has."""
    cost = own_copies / mean_copies
    load, goal = loads.edges[p], loads.goal_edges[p]
    cost += _price_of(load / goal, loads.price[0]) - _price_of((load - edges) / goal, loads.price[0])
    load, goal = loads.copies[p], loads.goal_copies[p]
    return cost + _price_of(load / goal, loads.price[0]) - _price_of((load - own_copies) / goal, loads.price[0])


@inline(_nrt=False)
def change_load(p, sign, edges, copies, loads):
    """Take so many edges and copies out of part p (sign -1), or put them in (1)."""
    loads.edges[p] += sign * edges
    loads.copies[p] += sign * copies
    _set_slopes(p, loads)
