"""Rounds of flows over the pairs of parts: what one pair leaves to the next, and one round to the next."""

import numpy as np
import pytest

from distgnn.partition import cut_edges
from distgnn.partition.flow.pair_rounds import FREE, Limits, cut_pairs, no_memory
from distgnn.partition.moves.cut_state import start_state


def test_rounds_of_pairs_never_add_copies(planted):
    """From poor cuts, with a second weight that must stay below a limit of its own."""
    generator = np.random.default_rng(0)
    rows = len(planted.src)
    for num_parts in (2, 3, 9):
        parts = cut_edges(planted, num_parts, "libra").edge_part.astype(np.int16)
        weights = np.stack([np.full(rows, 2), generator.random(rows) < 0.1], axis=1).astype(np.float32)
        loads = [np.bincount(parts, weights[:, kind], minlength=num_parts) for kind in range(2)]
        limits = Limits(weights, np.stack(loads, axis=1) * 1.05, np.full((num_parts, 3), np.inf))
        before = start_state(planted, parts, num_parts).num_copies.sum()
        after, _ = cut_pairs(planted, parts, limits, no_memory(num_parts))
        assert start_state(planted, after, num_parts).num_copies.sum() < before
        for kind in range(2):
            now = np.bincount(after, weights[:, kind], minlength=num_parts)
            assert (now <= limits.max_weight[:, kind]).all()


def test_pairs_with_nothing_to_save_rest_for_a_round_that_is_not_the_last(planted, monkeypatch):
    searched, savings = [], iter(())

    def search(pair, _):
        """Saves what is next, and ends with 0.1 and 0.5 of the edges."""
        searched.append(pair.free.tolist())
        pair.free[:] = 0.1, 0.5
        return next(savings, 0)

    monkeypatch.setattr("distgnn.partition.flow.pair_rounds.cut_pair", search)
    parts = cut_edges(planted, 4, "libra").edge_part.astype(np.int16)
    weights = np.zeros((len(parts), 2), dtype=np.float32)
    limits = Limits(weights, np.full((4, 2), np.inf), np.full((4, 3), np.inf))
    memory = no_memory(4)
    # Of six pairs: five have nothing to save and rest; they are back; now one alone has none, and the others nothing,
    # so that it is asked, too.
    for saved, expected, worth_while in (([1], 6, True), ([1], 1, True), ([1] * 5, 6, True), ([], 6, False)):
        savings = iter(saved)
        searched.clear()
        assert cut_pairs(planted, parts, limits, memory)[1] == worth_while
        assert len(searched) == expected
    # Three times what was left, at most as much as at first.
    assert all(free == [pytest.approx(0.3), FREE] for free in searched)


def test_pairs_see_how_many_parts_the_pairs_before_them_have_left_each_vertex_in(planted):
    """A vertex in no third part must be owned by one of the two: each part may have so many. Pairs that ask for
    counts of before the first pair moved anything let parts go beyond that."""
    for num_parts in (3, 5, 9):
        parts = cut_edges(planted, num_parts, "libra").edge_part.astype(np.int16)
        weights = np.zeros((len(parts), 2), dtype=np.float32)
        limits = np.full((num_parts, 3), np.inf)
        limits[:, 1] = 1.1 * in_one_part(planted, parts, num_parts)
        after, _ = cut_pairs(
            planted, parts, Limits(weights, np.full((num_parts, 2), np.inf), limits), no_memory(num_parts)
        )
        assert (after != parts).any()
        assert (in_one_part(planted, after, num_parts) <= limits[:, 1]).all()


def in_one_part(edges, parts, num_parts):
    """Vertices [P] that are in this part and in no other."""
    held = np.zeros((edges.num_nodes, num_parts), dtype=bool)
    held[edges.src, parts] = held[edges.dst, parts] = True
    return held[held.sum(axis=1) == 1].sum(axis=0)
