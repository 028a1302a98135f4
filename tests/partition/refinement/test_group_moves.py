"""Groups of edges: the part where one costs least, and who is asked when others have moved."""

import itertools

import numpy as np
import pytest

from distgnn.partition.refinement import group_moves
from distgnn.partition.refinement.group_loads import (
    cost_of_adding,
    cost_of_keeping,
    count_with_rows,
    least_cost,
    no_row_loads,
    row_cost,
    row_goal,
    set_slopes,
    shared_copies,
    start_loads,
)
from distgnn.partition.refinement.group_moves import Placement, cheapest_part, move_groups
from distgnn.partition.refinement.groups import (
    ENOUGH_MEMBERS,
    FEWEST_AT_ONCE,
    MOST_AT_ONCE,
    Groups,
    cut_blocks,
    without_gaps,
)

from ..graphs import table_of

VERTICES, PARTS, GROUPS = 400, 9, 120
SHARES = np.arange(1, PARTS + 1) / np.arange(1, PARTS + 1).sum()


def groups_with(*members, sizes=None):
    sizes = [10.0] * len(members) if sizes is None else sizes
    indptr = np.cumsum([0, *map(len, members)])
    flat = np.concatenate(members).astype(np.int32)
    return Groups(indptr, flat, np.array(sizes, dtype=float), np.ones(len(flat), dtype=np.uint16))


def place(groups, part, num_vertices, num_parts):
    edges = np.bincount(part, groups.sizes, minlength=num_parts).astype(float)
    copies = np.zeros(num_parts)
    for p in range(num_parts):
        copies[p] = len(np.unique(groups.members[np.repeat(part, np.diff(groups.indptr)) == p]))
    return table_of(groups, part, num_vertices, num_parts), edges, copies


# Helpers are called from Python, not from a kernel of this file: its cache would not see that a helper has changed.
@pytest.mark.slow  # they compile in each process, for some seconds
@pytest.mark.parametrize(("load_price", "row_price"), [(0.0, 0.0), (0.3, 0.0), (3.0, 0.0), (0.05, 8.0)])
def test_no_part_costs_less_than_the_cheapest(load_price, row_price):
    rng = np.random.default_rng(3)
    members = [rng.choice(VERTICES, rng.integers(1, 13), replace=False) for _ in range(GROUPS)]
    groups = groups_with(*members, sizes=rng.integers(1, 40, GROUPS))
    part = rng.choice(PARTS, GROUPS, p=SHARES[::-1]).astype(np.int16)  # far from the shares: parts without members pay
    table, edges, copies = place(groups, part, VERTICES, PARTS)
    loads = start_loads(edges, copies, edges.sum() * SHARES, copies.sum() * SHARES)
    loads.price[0] = load_price
    set_slopes(loads)
    rows = no_row_loads(PARTS)
    rows.shared[:] = shared_copies(table)
    rows.price[0], rows.goal[:] = row_price, row_goal(copies.sum(), VERTICES, SHARES)
    mean, num_present, empty_ones = copies.sum() / PARTS, np.empty(PARTS, dtype=np.int32), 0
    for c in range(GROUPS):
        home, size = part[c], len(members[c])
        count_with_rows(c, home, groups, table, num_present, rows)
        costs = np.empty(PARTS)
        for p in range(PARTS):
            cost = cost_of_keeping if p == home else cost_of_adding
            costs[p] = cost(p, groups.sizes[c], size - num_present[p], loads, mean)
            if p != home:
                assert least_cost(p, groups.sizes[c], size - num_present[p], loads, mean) <= costs[p]
            costs[p] += row_cost(p, home, num_present, mean, rows)
        best = cheapest_part(c, groups, Placement(part, table, loads, rows), num_present)
        assert costs[best] == costs.min()
        empty_ones += num_present[best] == 0 and best != home
    assert (empty_ones > 0) == (load_price > 0)


def test_slopes_follow_the_loads_of_a_part(monkeypatch):
    """Of what moves in one sweep: after it, slopes are those of the loads there are."""
    rng = np.random.default_rng(5)
    members = [rng.choice(VERTICES, rng.integers(1, 13), replace=False) for _ in range(GROUPS)]
    groups = groups_with(*members, sizes=rng.integers(1, 40, GROUPS))
    part = rng.integers(0, PARTS, GROUPS).astype(np.int16)
    before = part.copy()
    table, edges, copies = place(groups, part, VERTICES, PARTS)
    loads = start_loads(edges, copies, edges.sum() * SHARES, copies.sum() * SHARES)
    move_groups(
        groups,
        Placement(part, table, loads, no_row_loads(PARTS)),
        SHARES,
        np.ones(VERTICES),
        2,
        "in turn",
        row_price=8.0,
    )
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
    table, edges, copies = place(groups, part, 21, 2)
    loads = start_loads(edges, copies, edges.sum() * np.ones(2) / 2, copies.sum() * np.ones(2) / 2)
    move_groups(
        groups, Placement(part, table, loads, no_row_loads(2)), np.ones(2) / 2, np.ones(21), 8, how, extra_price=0.0
    )
    assert part.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("most", "size"), [(1, 1), (200, 50), (10**4, 300), (10**9, 300)])
def test_numbers_without_gaps_are_in_the_order_of_keys(most, size):
    """Marked, and sorted where keys are far apart."""
    keys = np.random.default_rng(size).integers(0, most, size)
    numbers, num_keys = without_gaps(keys)
    values, expected = np.unique(keys, return_inverse=True)
    assert num_keys == len(values) and numbers.dtype == np.int32
    np.testing.assert_array_equal(numbers, expected)
    assert without_gaps(keys[:0])[1] == 0


@pytest.mark.parametrize("size", [1, 12, 200, 10**4])
@pytest.mark.parametrize("chosen", [0, 1, 700, 5000, 400_000])
def test_blocks_of_groups_end_with_enough_of_them_or_of_their_members(chosen, size):
    sizes = np.random.default_rng(size).integers(1, 2 * size, 5000)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    groups = Groups(indptr, np.empty(0, np.int32), sizes.astype(float), np.empty(0, np.uint16))
    ids = np.random.default_rng(0).integers(0, 5000, chosen).astype(np.int32)
    bounds = cut_blocks(ids, groups)
    assert bounds[0] == 0 and bounds[-1] == chosen
    fewest = max(FEWEST_AT_ONCE, chosen // 256)
    for first, end in itertools.pairwise(bounds):
        members = np.cumsum(sizes[ids[first:end]])
        enough = max(fewest, min(int(np.searchsorted(members, ENOUGH_MEMBERS)) + 1, MOST_AT_ONCE))
        assert end - first == min(enough, chosen - first)
