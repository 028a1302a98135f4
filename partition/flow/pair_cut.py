"""Two parts cut anew: fewest vertices in both, within both parts' limits.

Edges near the present border are free; those beyond stay where they are, and where they touch are the terminals of a
flow. Its minimum separators are the best borders inside the region. Where each of them leaves one part too much, the
region shrinks on the side that gave: terminals are added, and the flow goes on from where it is.

Shapes: N vertices and E edges of the two parts p and q; sides: 0 is p, 1 is q.
Source: ours; the regions are those of KaHyPar's flow refinement (Heuer, Sanders, Schlag 2018).
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.partition.flow.max_flow import (
    Flow,
    Scratch,
    claim,
    nothing_reached,
    put,
    raise_flow,
    spread_backward,
    spread_forward,
    take_back,
)
from distgnn.partition.flow.region import Pair, list_members, open_region, shrink

TRIES = 24
MISSES = 64  # vertices that would bring too much, until balance between the two extreme borders is given up
BALANCED, TOO_MUCH_P, TOO_MUCH_Q = range(3)


def cut_pair(pair: Pair, num_vertices: int) -> int:
    """Write a better border to `pair.sides`, if there is one; returns how many vertices fewer are in both parts."""
    net, region = open_region(pair, num_vertices)
    if region.sizes[0] == 0:
        return 0
    flow = Flow(np.zeros(num_vertices, dtype=np.bool_), *np.full((2, num_vertices), -1, dtype=np.int32))
    scratch = Scratch(*np.empty((4, 2 * num_vertices + 1), dtype=np.int32))
    reaches = [nothing_reached(num_vertices, len(pair.ends)) for _ in range(2)]
    return _search(pair, net, region, flow, scratch, *reaches)


@kernel(_nrt=False)
def _search(pair, net, region, flow, scratch, forward, backward):
    """Shrink the region until one of its minimum separators is within the limits."""
    at_most = region.sizes[0]
    paths = 0
    for _ in range(TRIES):
        list_members(region)
        members = region.members[: region.sizes[1]]
        paths += raise_flow(net, flow, scratch, members, at_most - paths)
        if paths == at_most:
            return 0
        heavy = _balance(pair, net, region, members, flow, forward, backward)
        if heavy == BALANCED:
            heavy = _compare_held(pair, region, members, forward)
        if heavy == BALANCED:
            for e in range(pair.ends.shape[0]):
                if net.inside[pair.ends[e, 0]] and net.inside[pair.ends[e, 1]]:
                    pair.sides[e] = 0 if forward.claimed[e] else 1
            return at_most - paths
        giving = 1 if heavy == TOO_MUCH_P else 0
        if region.depths[giving] == 0:
            giving = 1 - giving
        if region.depths[giving] == 0:
            return 0
        shrink(giving, region, net, flow)
    return 0


@inline(_nrt=False)
def _forget(reach):
    reach.reached[:] = False
    reach.claimed[:] = False
    reach.ends[:] = 0
    reach.weight[:] = 0


@kernel(_nrt=False)
def _balance(pair, net, region, members, flow, forward, backward):
    """Find a minimum separator within the limits: `forward` then has p's side. Else which part has too much."""
    _forget(forward)
    for i in range(members.shape[0]):
        if net.from_source[members[i]]:
            put(2 * members[i], forward)
    spread_forward(net, flow, pair.weights, 0, forward)
    if _beyond(pair, region, 0, forward):
        return TOO_MUCH_P
    if not _short(pair, region, forward) or _even_out(pair, net, region, members, forward):
        return BALANCED
    _forget(backward)
    for i in range(members.shape[0]):
        if net.to_sink[members[i]]:
            put(2 * members[i] + 1, backward)
    spread_backward(net, flow, pair.weights, 0, backward)
    if _beyond(pair, region, 1, backward):
        return TOO_MUCH_Q
    misses, own, shared = 0, region.depths[0], region.sizes[0]
    for i in range(members.shape[0]):  # p's own, farthest first, then shared, then q's, nearest first
        if i < own:
            v = region.orders[0, own - 1 - i]
        elif i < own + shared:
            v = members[i - own]
        else:
            v = members[i]
        if forward.reached[2 * v + 1] or backward.reached[2 * v + 1]:
            continue
        queue_end, claims_end = forward.ends[0], forward.ends[1]
        put(2 * v + 1, forward)
        spread_forward(net, flow, pair.weights, queue_end, forward)
        if _beyond(pair, region, 0, forward):
            take_back(queue_end, claims_end, pair.weights, forward)
            misses += 1
            if misses == MISSES:
                break
        elif not _short(pair, region, forward):
            return BALANCED
    if _even_out(pair, net, region, members, forward):
        return BALANCED
    q_freer = region.weight[1, region.depths[1], 0] > region.weight[0, region.depths[0], 0]
    return TOO_MUCH_P if q_freer else TOO_MUCH_Q


@kernel(_nrt=False)
def _even_out(pair, net, region, members, forward):
    """Edges between vertices of the separator cost nothing on either side: give p as many as q has too many."""
    claims_end = forward.ends[1]
    for turn in range(2):  # those that were p's first
        for i in range(members.shape[0]):
            v = members[i]
            if not forward.reached[2 * v] or forward.reached[2 * v + 1]:
                continue
            for j in range(net.indptr[v], net.indptr[v + 1]):
                w, e = net.neighbours[j], net.edges[j]
                between = net.inside[w] and forward.reached[2 * w] and not forward.reached[2 * w + 1]
                if between and pair.sides[e] == turn and not forward.claimed[e]:
                    claim(e, pair.weights, forward)
                    if not _short(pair, region, forward) and not _beyond(pair, region, 0, forward):
                        return True
    take_back(forward.ends[0], claims_end, pair.weights, forward)
    return False


@inline(_nrt=False)
def _load(region, side, kind, reach):
    """What is fixed to this part, and what it claims."""
    return region.loads[side, kind] - region.weight[side, region.depths[side], kind] + reach.weight[kind]


@inline(_nrt=False)
def _beyond(pair, region, side, reach):
    first, second = _load(region, side, 0, reach), _load(region, side, 1, reach)
    return first > pair.limits[side, 0] or second > pair.limits[side, 1]


@inline(_nrt=False)
def _short(pair, region, forward):
    """Whether what p does not have is more than q may have."""
    for kind in range(2):
        total = region.loads[0, kind] + region.loads[1, kind]
        if total - _load(region, 0, kind, forward) > pair.limits[1, kind]:
            return True
    return False


@kernel(_nrt=False)
def _compare_held(pair, region, members, forward):
    """Whether both parts would hold a fair number of vertices, or one no farther from it than now."""
    now = region.held
    all_p, all_q, alone_p, alone_q = now[0, 0], now[1, 0], now[0, 1], now[1, 1]
    for i in range(members.shape[0]):
        v = members[i]
        was_p = i < region.sizes[0] + region.depths[0]
        was_q = i < region.sizes[0] or not was_p
        in_p, in_q = forward.reached[2 * v] or forward.reached[2 * v + 1], not forward.reached[2 * v + 1]
        all_p += np.int64(in_p) - np.int64(was_p)
        all_q += np.int64(in_q) - np.int64(was_q)
        if pair.alone[v]:
            alone_p += np.int64(in_p and not in_q) - np.int64(was_p and not was_q)
            alone_q += np.int64(in_q and not in_p) - np.int64(was_q and not was_p)
    if all_p > max(pair.most[0, 0], now[0, 0]) or alone_p > max(pair.most[0, 1], now[0, 1]):
        return TOO_MUCH_P
    if all_q > max(pair.most[1, 0], now[1, 0]) or alone_q > max(pair.most[1, 1], now[1, 1]):
        return TOO_MUCH_Q
    return BALANCED
