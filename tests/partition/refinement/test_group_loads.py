"""What a group's move changes in the shared copies of all parts, against counting all of them again."""

import numpy as np
import pytest

from distgnn.partition.core.book import PartitionBook
from distgnn.partition.methods import cut_edges
from distgnn.partition.refinement import group_loads
from distgnn.partition.refinement.group_loads import count_with_rows, row_cost, row_excess, row_goal, shared_copies
from distgnn.partition.refinement.group_moves import move_groups
from distgnn.partition.refinement.groups import count_present

from ..graphs import core_and_islands, placed, random_groups

VERTICES, PARTS, GROUPS = 60, 7, 40
SHARES = np.arange(1, PARTS + 1) / np.arange(1, PARTS + 1).sum()


# Helpers are called from Python, not from a kernel of this file: its cache would not see that a helper has changed.
def price(c, home, groups, table, num_present, rows):
    expected = num_present.copy()
    count_present(c, home, groups, table, expected)
    count_with_rows(c, home, groups, table, num_present, rows)
    assert num_present.tolist() == expected.tolist()
    return np.array([row_cost(p, home, num_present, 1.0, rows) for p in range(PARTS)])


@pytest.fixture(params=[0, 1, 2])
def made(request, monkeypatch):
    """Groups of 1 to 12 members, in parts of unequal shares: vertices in one group and in many, sparse and dense."""
    monkeypatch.setattr(group_loads, "LEAST_GOAL", 1e-9)
    rng = np.random.default_rng(request.param)
    groups = random_groups(rng, GROUPS, VERTICES, 9)
    return groups, placed(groups, rng.integers(0, PARTS, GROUPS).astype(np.int16), VERTICES, SHARES)


def held_in(groups, part):
    """bool [N, P]: which parts have a vertex."""
    held = np.zeros((VERTICES, PARTS), dtype=bool)
    held[groups.members, np.repeat(part, np.diff(groups.indptr))] = True
    return held


def shared_in(groups, part):
    held = held_in(groups, part)
    return held[held.sum(axis=1) > 1].sum(axis=0).astype(float)


@pytest.mark.slow  # its helpers compile in each process, for some seconds
def test_costs_of_all_parts_are_what_a_recount_finds(made):
    groups, (part, table, _, rows) = made
    assert shared_copies(table).tolist() == shared_in(groups, part).tolist()
    num_present = np.empty(PARTS, dtype=np.int32)
    rows.shared[:] = shared_in(groups, part)
    active = len(np.unique(groups.members))
    rows.price[0], rows.goal[:] = 3.0, row_goal(float(table.vertex[:, 0].sum()), active, SHARES)
    differ = 0
    for c in range(GROUPS):
        cost = price(c, part[c], groups, table, num_present, rows)
        excess = []
        for p in range(PARTS):
            moved = part.copy()
            moved[c] = p
            over = np.maximum(shared_in(groups, moved) / rows.goal - 1, 0)
            excess.append(3.0 * (rows.goal * over**2).sum())
        np.testing.assert_allclose(cost - cost[0], np.array(excess) - excess[0], atol=1e-9)
        differ += np.ptp(excess) > 0
    assert differ > GROUPS // 2


def test_loads_stay_those_of_a_recount_while_groups_move(made):
    groups, placement = made
    part, _, loads, rows = placement
    degrees, before = np.bincount(groups.members, minlength=VERTICES), part.copy()
    move_groups(groups, placement, SHARES, degrees, 8, "in turn", row_price=8.0)
    assert (part != before).any()
    assert rows.shared.tolist() == shared_in(groups, part).tolist()
    assert loads.copies.tolist() == held_in(groups, part).sum(axis=0).tolist()


def test_the_goal_is_the_mean_of_what_parts_exchange(made):
    """Whoever owns what: 2 (c - 1) rows for a vertex of c copies."""
    groups, (part, table, *_) = made
    held = held_in(groups, part)
    copies = held.sum(axis=1)
    exchanged = shared_in(groups, part)
    owners = held.argmax(axis=1)
    np.add.at(exchanged, owners[copies > 1], copies[copies > 1] - 2.0)
    active = int((copies > 0).sum())
    np.testing.assert_allclose(row_goal(float(copies.sum()), active, SHARES), exchanged.sum() * SHARES)
    over = np.maximum(shared_in(groups, part) / (exchanged.sum() * SHARES) - 1, 0)
    excess = group_loads.row_price(PARTS) * (exchanged.sum() * SHARES * over**2).sum()
    np.testing.assert_allclose(row_excess(table, active, SHARES), excess)


def test_parts_of_a_clustered_graph_exchange_about_the_same(monkeypatch):
    """Without a price on rows, a part of the core has 1.4 times the mean, and those of islands next to nothing."""
    edges = core_and_islands()
    priced = PartitionBook(edges, cut_edges(edges, 8))
    assert priced.edge_balance <= 1.031 and priced.owned_balance <= 1.05 and priced.copies_balance <= 1.05
    monkeypatch.setattr(group_loads, "MOST_PRICE", 0.0)
    free = PartitionBook(edges, cut_edges(edges, 8))
    ratios = [book.max_rank_rows * 8 / (2 * book.exchange_rows) for book in (priced, free)]
    assert ratios[0] < 1.3 and ratios[1] > 1.35
    assert priced.max_rank_rows < 0.95 * free.max_rank_rows
