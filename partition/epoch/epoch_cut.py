"""From a cut with few rows to one whose worst rank has the shortest predicted epoch.

Two things are moved, in turn. *Owners*: whoever owns a vertex with two copies, both parts exchange the same, so ranks
with more arcs and rows than others own, and compute, fewer vertices. *Edges*, as in refine.py, at other prices: a copy
costs the rows that it exchanges, an edge the arcs that it adds, each times how far its rank is from the mean epoch; and
the limit of arcs is not the same for all, but where a rank would become the worst one. Whatever was found with the
shortest epoch is kept, the cut one started from included.

Shapes: M rows of the edge list, N vertices, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.owners import balanced_owners
from distgnn.partition.core.vertex_cut import VertexCut
from distgnn.partition.epoch.epoch_price import EpochPrices, Loads, loads_of
from distgnn.partition.moves.edge_moves import arc_limit, prices_of, start_state, sweep

ROUNDS = 4
SCHEDULE = (0.1, 0.0)
STEEPNESS = 4.0  # of what a rank beyond the mean epoch pays more
STEEPEST = 4.0  # exponent
LEAST_COPY = 0.01  # arcs: a copy costs as much, even where rows cost nothing
MOST_ARCS = 2.0  # of a part over its share: memory has an end
FEWEST_OWNED = 0.5  # of a part's share


def cut_for_epoch(
    edge_list, edge_part, owner, shares, prices: EpochPrices, update: str
) -> tuple[np.ndarray, np.ndarray]:
    """Part [M] int16 of each row and owner [N] int32.

    Args: edge_part: [M] and owner: [N], where to start; shares: [P], see `part_shares`; update: "owners" or "copies".
    Notes: memory and time as of `refine`, `ROUNDS` times over. Threads make no difference.
    """
    num_parts = len(shares)
    if num_parts == 1 or len(edge_part) == 0:
        return edge_part, owner

    def judged(parts, owners):
        loads = _loads(edge_list, parts, owners, num_parts, update)
        return float(prices.seconds(loads, shares).max()), loads

    best, (least, loads) = (edge_part, owner), judged(edge_part, owner)
    parts = edge_part
    for number in range(ROUNDS + 1):
        for goal in (shares, _dense_shares(loads, shares, prices, update)):
            owners = balanced_owners(edge_list, parts, goal)
            worst, found = judged(parts, owners)
            if worst < least:
                best, least = (parts, owners), worst
        loads = found
        if number < ROUNDS:
            parts = _sweeps(edge_list, parts, loads, shares, prices)
            loads = judged(parts, owners)[1]
    return best


def _loads(edge_list, edge_part, owner, num_parts: int, update: str) -> Loads:
    book = PartitionBook(edge_list, VertexCut(num_parts, edge_part, owner))
    return loads_of(book.num_arcs, book.num_owned, book.num_rows, book.pair_rows, update)


def _dense_shares(loads: Loads, shares: np.ndarray, prices: EpochPrices, update: str) -> np.ndarray:
    """Shares [P] of owned vertices with which all ranks would take as long, as far as owned vertices can do that."""
    dense = prices.per_load.dense
    if update != "owners" or not dense:
        return shares
    speed = shares * len(shares)
    others = prices.seconds(loads._replace(dense=np.zeros(len(shares))), shares)
    fair = loads.dense.sum() * shares
    low, high = others.min(), others.max() + dense * float(loads.dense.sum()) / speed.min()
    for _ in range(60):  # the epoch at which what fits beside the other work is all there is
        middle = (low + high) / 2
        owned = _fitting(middle, others, speed, dense, fair)
        low, high = (middle, high) if owned.sum() < loads.dense.sum() else (low, middle)
    owned = _fitting(high, others, speed, dense, fair)
    return owned / owned.sum()


def _fitting(seconds: float, others, speed, dense: float, fair) -> np.ndarray:
    return np.clip((seconds - others) * speed / dense, FEWEST_OWNED * fair, None)


def _sweeps(edge_list, edge_part, loads: Loads, shares, prices: EpochPrices) -> np.ndarray:
    """Edges moved towards a shorter epoch of the worst rank."""
    state = start_state(edge_list, np.array(edge_part, dtype=np.int16), len(shares))
    at = _Pricing(loads, state.rows.copy(), shares, prices)
    limit = at.arc_limits(arc_limit(edge_list, shares, MOST_ARCS))
    for s in SCHEDULE:
        sweep(edge_list, state, limit, STEEPNESS, s, shares, at)
    return state.edge_part


class _Pricing:
    """Prices of refinement from predicted epochs; they follow what moves.

    Args: loads: of the cut at the start; copies: [P], its local rows; shares: [P].
    """

    def __init__(self, loads: Loads, copies: np.ndarray, shares: np.ndarray, prices: EpochPrices) -> None:
        self.loads, self.copies, self.shares, self.prices = loads, copies, shares, prices

    def arc_limits(self, most: np.ndarray) -> np.ndarray:
        """Arcs [P] with which each rank would take as long as the worst one, at most `most`."""
        arc = self.prices.per_load.arcs
        seconds = self.prices.seconds(self.loads, self.shares)
        if not arc:
            return most
        room = (seconds.max() - seconds) * self.shares * len(self.shares) / arc
        return np.minimum(most, self.loads.arcs + room)

    def __call__(self, state, limit, beta, s, shares, arcs):
        """`Prices` in units of what a copy costs: two rows at its part, two at its owner's, wherever that is."""
        new = state.rows - self.copies
        rows = self.loads.rows + 2 * new + 2 * new.sum() / len(shares)
        seconds = self.prices.seconds(self.loads._replace(arcs=state.arcs, rows=rows), shares)
        steep = np.exp(np.clip(beta * (seconds / seconds.mean() - 1), -STEEPEST, STEEPEST))
        arc, _, row = self.prices.per_load
        copy = max(4 * row, LEAST_COPY * arc, 1e-30)
        price = 1 + arcs * arc * steep / (shares * len(shares)) / copy
        return prices_of(s, (steep + 1) / 2, price, state.arcs + arcs > limit)
