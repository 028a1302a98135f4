"""Moves of single edges: the table of copies stays true, full parts are emptied, copies follow capacities."""

import numpy as np

from distgnn.partition import cut_edges
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.core.vertex_cut import part_shares
from distgnn.partition.refinement.cut_state import arc_limit, rebalance, start_state
from distgnn.partition.refinement.edge_moves import refine, sweep
from distgnn.partition.refinement.replica_table import COPIES, SATURATED, num_edges_in


def test_the_table_of_copies_stays_true(power_law):
    """After two sweeps the table, the arcs and the rows are what a new count gives; bytes stay at 255."""
    assert endpoint_degrees(power_law).max() > 6 * SATURATED
    shares = part_shares(6)
    state = start_state(power_law, cut_edges(power_law, 6, "random").edge_part, 6)
    for s in (2.0, 0.0):
        assert sweep(power_law, state, arc_limit(power_law, shares, 1.03), 2.0, s, shares) > 0
    again = start_state(power_law, state.edge_part, 6)
    np.testing.assert_array_equal(state.arcs, again.arcs)
    stuck = 0
    for v in range(power_law.num_nodes):
        found, fresh = counts(state.table, v), counts(again.table, v)
        stuck += np.count_nonzero(found != fresh)
        assert (found[found != fresh] == SATURATED).all()
        assert state.table.vertex[v, COPIES] == np.count_nonzero(found)
    assert 0 <= state.num_copies.sum() - again.num_copies.sum() <= stuck < power_law.num_nodes / 100


def counts(table, v):
    return np.array([num_edges_in(table, v, part) for part in range(table.num_parts)])


def test_overfull_parts_are_emptied(planted):
    """All edges in one part: refinement alone cannot see the others."""
    state = start_state(planted, np.zeros(len(planted.src), dtype=np.int16), 4)
    limit = arc_limit(planted, part_shares(4), 1.03)
    rebalance(planted, state, limit)
    assert (state.arcs <= limit).all()
    refined = refine(planted, np.zeros(len(planted.src), dtype=np.int16), part_shares(4))
    assert (np.bincount(refined, minlength=4) * 2 <= limit).all()


def test_copies_of_refined_edges_follow_capacities(planted):
    """From a random cut, which is far from any balance of copies: prices without shares leave twice a share in some."""
    shares, degrees = part_shares(4, [4, 2, 1, 1]), endpoint_degrees(planted)
    given = np.random.default_rng(0).choice(4, planted.num_edges, p=shares)
    parts = refine(planted, given, shares, degrees=degrees)
    copies = start_state(planted, parts, 4, degrees).num_copies
    assert (copies / (copies.sum() * shares)).max() < 1.5
