"""Flows between two parts: minimum separators against another solver, and what they may and may not do to a cut."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow

from distgnn.partition import PartitionBook, cut_edges
from distgnn.partition.cmr.method import MOST_ARCS, refine_cut
from distgnn.partition.core.shares import part_shares
from distgnn.partition.flow.max_flow import augment, no_flow
from distgnn.partition.flow.pair_cut import (
    BACKWARD,
    FORWARD,
    _grow,
    _leaves_too_much,
    _room,
    add_node,
    cut_pair,
    nothing_reached,
    spread,
    take_back,
)
from distgnn.partition.flow.pair_rounds import FREE
from distgnn.partition.flow.region import Pair, list_members, open_region, shrink
from distgnn.partition.moves.cut_state import arc_limit, start_state
from distgnn.partition.moves.edge_moves import refine

from ..graphs import NAMES, awkward, edge_list


def random_pair(seed):
    """Two parts of a random graph; half of them are a path of cliques, where good borders are far apart."""
    generator = np.random.default_rng(seed)
    size = int(generator.integers(8, 40))
    ends = generator.integers(0, size, (3 * size, 2))
    if seed % 2:
        ends[:, 1] = np.minimum(size - 1, ends[:, 0] + generator.integers(0, 4, len(ends)))
    used, ends = np.unique(ends, return_inverse=True)
    ends = np.ascontiguousarray(ends.reshape(-1, 2).astype(np.int32))
    sides = (ends.min(axis=1) > len(used) // 2).astype(np.uint8)
    sides[generator.random(len(sides)) < 0.1] ^= 1
    order = np.argsort(sides, kind="stable")
    weights = np.zeros((len(ends), 2), dtype=np.float32)
    weights[:, 0] = 2
    limits = np.full((2, 2), np.inf)
    limits[:, 0] = 2 * generator.integers(len(ends) // 2, len(ends))
    alone = generator.random(len(used)) < 0.8
    return Pair(ends[order], sides[order], weights, alone, limits, np.full((2, 3), np.inf), np.full(2, FREE)), len(used)


def smallest_separator(net):
    """The most vertex-disjoint paths from sources to sinks, by SciPy on the graph with every vertex split in two."""
    size = len(net.inside)
    source, sink, much = 2 * size, 2 * size + 1, 10**6
    capacity = sparse.lil_matrix((2 * size + 2, 2 * size + 2), dtype=np.int32)
    for v in np.flatnonzero(net.inside):
        capacity[2 * v, 2 * v + 1] = 1
        if net.from_source[v]:
            capacity[source, 2 * v] = much
        if net.to_sink[v]:
            capacity[2 * v + 1, sink] = much
        for w in net.neighbours[net.indptr[v] : net.indptr[v + 1]]:
            if net.inside[w] and w != v:
                capacity[2 * v + 1, 2 * w] = much
    return maximum_flow(capacity.tocsr(), source, sink).flow_value


def members_of(region):
    free = [region.orders[side, : region.depths[side]] for side in range(2)]
    return np.concatenate([region.members[: region.sizes[0]], *free])


def test_flows_are_largest_before_and_after_regions_shrink():
    larger = 0
    for seed in range(60):
        pair, num_vertices = random_pair(seed)
        net, region = open_region(pair, num_vertices)
        flow, scratch = no_flow(num_vertices)
        value = augment(net, flow, scratch, members_of(region), num_vertices)
        assert value == smallest_separator(net) <= region.sizes[0]
        for step in range(4):
            side = step % 2
            if region.depths[side]:
                shrink(side, region, net, flow)
                more = augment(net, flow, scratch, members_of(region), num_vertices)
                value += more
                larger += more
                assert value == smallest_separator(net) <= region.sizes[0]
    assert larger > 0


def in_both(pair, num_vertices):
    return int(held_by(pair, num_vertices).all(axis=1).sum())


def test_a_pair_saves_what_it_says_within_its_limits():
    saved_in_all = 0
    for seed in range(200):
        pair, num_vertices = random_pair(seed)
        before, sides = in_both(pair, num_vertices), pair.sides.copy()
        saved = cut_pair(pair, num_vertices)
        assert in_both(pair, num_vertices) == before - saved and saved >= 0
        if saved:
            assert (np.bincount(pair.sides, pair.weights[:, 0], minlength=2) <= pair.max_weight[:, 0]).all()
        else:
            np.testing.assert_array_equal(pair.sides, sides)
        saved_in_all += saved
    assert saved_in_all > 100


def grow_by_trying(pair, net, region, members, flow, forward, backward):
    """`_grow`, every vertex with all that must follow it."""
    sized = region.sizes[0] + region.depths[0]
    for v in [*members[region.sizes[0] : sized][::-1], *members[: region.sizes[0]], *members[sized:]]:
        if forward.reached[2 * v + 1] or backward.reached[2 * v + 1]:
            continue
        queue_length, claims_length = forward.lengths
        add_node(2 * v + 1, forward)
        nothing, anything = np.zeros(len(forward.reached), dtype=bool), (np.inf, np.inf)
        assert spread(net, flow, pair.weights, queue_length, forward, FORWARD, nothing, anything)
        room = _room(pair, region, 0)
        if forward.weight[0] > room[0]:
            take_back(queue_length, claims_length, pair.weights, forward)
        elif not _leaves_too_much(pair, region, forward):
            return True
    return False


def test_what_is_passed_over_would_have_been_too_much():
    """Vertices that drag along one that brought too much are not tried: sides are those of trying each."""
    grown = missed = 0
    for seed in range(1, 600, 2):
        pair, num_vertices = random_pair(seed)
        found = []
        for grow in (_grow, grow_by_trying):
            net, region = open_region(pair, num_vertices)
            flow, scratch = no_flow(num_vertices)
            list_members(region)
            members = region.members[: region.sizes[1]]
            augment(net, flow, scratch, members, num_vertices)
            forward, backward = (nothing_reached(num_vertices, len(pair.ends)) for _ in range(2))
            for v in members[net.from_source[members]]:
                add_node(2 * v, forward)
            for v in members[net.to_sink[members]]:
                add_node(2 * v + 1, backward)
            anything = (np.inf, np.inf)
            # Neither meets the other.
            assert spread(net, flow, pair.weights, 0, forward, FORWARD, backward.reached, anything)
            assert spread(net, flow, pair.weights, 0, backward, BACKWARD, forward.reached, anything)
            barred = backward.reached.sum()
            done = grow(pair, net, region, members, flow, forward, backward)
            found.append([done, forward.reached.tolist(), forward.claimed.tolist(), forward.weight.tolist()])
            missed += backward.reached.sum() - barred
            grown += done
        assert found[0] == found[1]
    assert grown > 20 and missed > 100


def counts_of(held, only_here):
    """[2, 3]: vertices of each part, those that are in no other part, those that are."""
    alone = held & ~held[:, ::-1] & only_here[:, None]
    return np.stack([held.sum(axis=0), alone.sum(axis=0), (held & ~alone).sum(axis=0)], axis=1)


def test_vertices_a_part_may_hold_are_limited():
    checked = 0
    for seed in range(1000):
        pair, num_vertices = random_pair(seed)
        most = 1.1 * counts_of(held_by(pair, num_vertices), pair.only_here) + 1
        tight = pair._replace(max_copies=most)
        if cut_pair(tight, num_vertices):
            assert (counts_of(held_by(tight, num_vertices), pair.only_here) <= most).all()
            checked += 1
    assert checked > 20


def test_a_part_shares_no_more_vertices_with_others_where_that_is_limited():
    """Without the limit a part may get more vertices that third parts have than the pair saves."""
    larger = checked = 0
    for seed in range(600):
        for limited in (False, True):
            pair, num_vertices = random_pair(seed)
            few_alone = np.arange(num_vertices) % 4 == 0
            before = counts_of(held_by(pair, num_vertices), few_alone)
            most = np.full((2, 3), np.inf)
            if limited:
                most[:, 2] = before[:, 2]
            saved = cut_pair(pair._replace(max_copies=most, only_here=few_alone), num_vertices)
            more = counts_of(held_by(pair, num_vertices), few_alone)[:, 2] > before[:, 2]
            assert not (limited and more.any())
            checked += limited and saved > 0
            larger += more.any()
    assert larger > 10 and checked > 20


def held_by(pair, num_vertices):
    """bool [N, 2]: which of the two parts have a vertex."""
    held = np.zeros((num_vertices, 2), dtype=bool)
    held[pair.ends[:, 0], pair.sides] = held[pair.ends[:, 1], pair.sides] = True
    return held


def test_fewer_copies_at_the_same_balances_for_any_number_of_threads(planted, set_num_threads):
    shares = part_shares(5)
    given = cut_edges(planted, 5, "hdrf").edge_part.astype(np.int16)
    singly = refine(planted, given, shares)
    found = []
    for count in (1, 2, 8):
        set_num_threads(count)
        found.append(refine_cut(planted, given, shares))
    assert all(parts.tobytes() == found[0].tobytes() for parts in found)
    state = start_state(planted, found[0], 5)
    assert state.num_copies.sum() < 0.97 * start_state(planted, singly, 5).num_copies.sum()
    assert (state.arcs <= arc_limit(planted, shares, MOST_ARCS)).all()
    book = PartitionBook(planted, cut_edges(planted, 5, "hdrf", refine=True))
    assert book.edge_balance <= 1.03 and book.owned_balance <= 1.05 and book.copies_balance <= 1.05


def test_a_region_has_as_many_free_edges_as_it_is_told_and_says_how_many_were_left():
    smaller = 0
    for seed in range(40):
        pair, num_vertices = random_pair(seed)
        ended = pair._replace(sides=pair.sides.copy(), free=np.array([0.3, 0.05]))
        _, region = open_region(ended, num_vertices)
        for side, share in enumerate(ended.free):
            depth = region.depths[side]
            # One vertex less would not be enough; without any more of them, all are free that can be.
            assert depth == 0 or region.free_weight[side, depth - 1, 0] < share * region.loads[side, 0]
        free = [
            region.free_weight[side, : region.depths[side] + 1, 0] / max(region.loads[side, 0], 1) for side in (0, 1)
        ]
        cut_pair(ended, num_vertices)
        if region.sizes[0]:  # else there is nothing to search, and what is free stays as it was
            # Regions only shrink, and what they keep of a part is one of its depths.
            assert all(left in depths for left, depths in zip(ended.free, free, strict=True))
            smaller += any(left < depths[-1] for left, depths in zip(ended.free, free, strict=True))
    assert smaller >= 5


@pytest.mark.parametrize("name", NAMES)
def test_awkward_graphs(name):
    edges = edge_list(*awkward(name))
    for num_parts in (1, 2, 7):
        given = cut_edges(edges, num_parts, "random", seed=1).edge_part.astype(np.int16)
        refined = refine_cut(edges, given, part_shares(num_parts))
        assert refined.shape == given.shape and refined.dtype == np.int16
        assert refined.size == 0 or (refined.min() >= 0 and refined.max() < num_parts)
        if given.size:
            before, after = (start_state(edges, parts, num_parts).num_copies.sum() for parts in (given, refined))
            assert after <= before
