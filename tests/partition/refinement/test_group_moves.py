"""Groups of edges: the part where one costs least, and who is asked when others have moved."""

import numpy as np
import pytest

from distgnn.partition.refinement import group_loads, group_moves
from distgnn.partition.refinement.group_loads import count_with_rows, row_cost, row_goal, set_slopes, shared_copies
from distgnn.partition.refinement.group_moves import cheapest_part, move_groups

from ..graphs import groups_with, placed, random_groups

VERTICES, PARTS, GROUPS = 400, 9, 120
SHARES = np.arange(1, PARTS + 1) / np.arange(1, PARTS + 1).sum()


# Helpers are called from Python, not from a kernel of this file: its cache would not see that a helper has changed.
@pytest.mark.slow  # they compile in each process, for some seconds
@pytest.mark.parametrize(("load_price", "row_price"), [(0.0, 0.0), (0.3, 0.0), (3.0, 0.0), (0.05, 8.0)])
def test_no_part_costs_less_than_the_cheapest(load_price, row_price):
    rng = np.random.default_rng(3)
    groups = random_groups(rng, GROUPS, VERTICES)
    part = rng.choice(PARTS, GROUPS, p=SHARES[::-1]).astype(np.int16)  # far from the shares: parts without members pay
    placement = placed(groups, part, VERTICES, SHARES)
    _, table, loads, rows = placement
    loads.price[0] = load_price
    set_slopes(loads)
    rows.shared[:] = shared_copies(table)
    rows.price[0], rows.goal[:] = row_price, row_goal(loads.copies.sum(), VERTICES, SHARES)
    mean, num_present, empty_ones = loads.copies.sum() / PARTS, np.empty(PARTS, dtype=np.int32), 0
    for c in range(GROUPS):
        home, size = part[c], groups.indptr[c + 1] - groups.indptr[c]
        count_with_rows(c, home, groups, table, num_present, rows)
        costs = np.empty(PARTS)
        for p in range(PARTS):
            cost = group_loads.cost_of_keeping if p == home else group_loads.cost_of_adding
            costs[p] = cost(p, groups.sizes[c], size - num_present[p], loads, mean)
            if p != home:
                assert group_loads.least_cost(p, groups.sizes[c], size - num_present[p], loads, mean) <= costs[p]
            costs[p] += row_cost(p, home, num_present, mean, rows)
        best = cheapest_part(c, groups, placement, num_present)
        assert costs[best] == costs.min()
        empty_ones += num_present[best] == 0 and best != home
    assert (empty_ones > 0) == (load_price > 0)


def test_slopes_follow_the_loads_of_a_part():
    """Of what moves in one sweep: after it, slopes are those of the loads there are."""
    rng = np.random.default_rng(5)
    groups = random_groups(rng, GROUPS, VERTICES)
    part = rng.integers(0, PARTS, GROUPS).astype(np.int16)
    before, placement = part.copy(), placed(groups, part, VERTICES, SHARES)
    loads = placement.loads
    move_groups(groups, placement, SHARES, np.ones(VERTICES), 2, "in turn", row_price=8.0)
    assert np.count_nonzero(part != before) > 10
    found = loads.edges_slope.copy(), loads.copies_slope.copy()
    set_slopes(loads)
    np.testing.assert_array_equal(found, (loads.edges_slope, loads.copies_slope))


@pytest.mark.parametrize("how", ["in turn", "all in turn"])
def test_who_shares_a_vertex_with_one_that_moved_is_asked_in_the_same_sweep(how, monkeypatch):
    """The first group has six vertices in part 1 and five in its own; then the second has only one left there."""
    monkeypatch.setattr(group_moves, "FEW_MOVES", 2.0)  # one sweep
    first, second, fixed = [*range(6), *range(10, 15)], [*range(10, 15), 20], [*range(6)]
    groups = groups_with(first, second, fixed, sizes=[12, 6, 0])
    part = np.array([0, 0, 1], dtype=np.int16)
    shares = np.ones(2) / 2
    move_groups(groups, placed(groups, part, 21, shares), shares, np.ones(21), 8, how, extra_price=0.0)
    assert part.tolist() == [1, 1, 1]
