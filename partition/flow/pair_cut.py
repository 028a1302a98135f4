"""Two parts cut anew: fewest vertices in both, within both parts' limits.

Edges near the present border are free; those beyond stay where they are, and where they touch are the terminals of a
flow. Its minimum separators are the best borders inside the region. Where each of them leaves one part too much, the
region shrinks on the side that gave: terminals are added, and the flow goes on from where it is.

What is reached forward from the sources bounds the minimum separator nearest to them, what reaches a sink the one
nearest to the sinks. One more node to start from gives the next separator between (Picard and Queyranne 1980).

Shapes: N vertices and E edges of the two parts p and q; sides: 0 is p, 1 is q; nodes as in max_flow.py.
Source: ours; the regions, and balance by growing a side, are those of KaHyPar's flow refinement (Heuer, Sanders, Schlag
2018, section 4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.partition.flow.max_flow import augment, in_node, is_out, no_flow, out_node, vertex_of
from distgnn.partition.flow.region import (
    COPIES,
    ELSEWHERE,
    MEMBERS,
    OWNED,
    SHARED,
    P,
    Pair,
    Q,
    list_members,
    open_region,
    shrink,
)

TRIES = 24
MISSES = 64  # vertices that would bring too much, until balance between the two extreme borders is given up
BALANCED, TOO_MUCH_P, TOO_MUCH_Q = range(3)

QUEUE, CLAIMS = 0, 1  # places of Search.lengths
FORWARD, BACKWARD = 0, 1


class Search(NamedTuple):
    """reached: bool [2 N], nodes; queue: int32 [2 N], those nodes as they came; claimed: bool [E], edges at a vertex
    that can be left (backward: arrived at); claims: int32 [E], those edges as they came; lengths: int64 [2], of queue
    and claims; weight: float64 [2], of the claimed edges."""

    reached: np.ndarray
    queue: np.ndarray
    claimed: np.ndarray
    claims: np.ndarray
    lengths: np.ndarray
    weight: np.ndarray


def nothing_reached(num_vertices: int, num_edges: int) -> Search:
    reached, claimed = np.zeros(2 * num_vertices, dtype=np.bool_), np.zeros(num_edges, dtype=np.bool_)
    queue, claims = np.empty(2 * num_vertices, dtype=np.int32), np.empty(num_edges, dtype=np.int32)
    return Search(reached, queue, claimed, claims, np.zeros(2, dtype=np.int64), np.zeros(2))


@inline(counted=False)
def forget(search):
    search.reached[:] = False
    search.claimed[:] = False
    search.lengths[:] = 0
    search.weight[:] = 0


@inline(counted=False)
def add_node(node, search):
    """Spread from this node too, next time."""
    if not search.reached[node]:
        search.reached[node] = True
        search.queue[search.lengths[QUEUE]] = node
        search.lengths[QUEUE] += 1


@inline(counted=False)
def claim(e, weights, search):
    """Count edge e, which is not claimed yet, to this side."""
    search.claimed[e] = True
    search.claims[search.lengths[CLAIMS]] = e
    search.lengths[CLAIMS] += 1
    search.weight[0] += weights[e, 0]
    search.weight[1] += weights[e, 1]


@kernel(counted=False)
def spread(net, flow, weights, head, search, direction, barred, room):
    """Spread from the nodes queue[head:] along residual steps (backward: against them).

    Backward is forward in the mirror: in and out, pred and succ change places. `wide` nodes, out-nodes forward and
    in-nodes backward, have a step to every neighbour, and the edges of their vertices are claimed.

    Args: barred: bool [2 N], nodes that must not be reached; room: most of each weight.
    Returns: False as soon as a barred node or more weight than there is room for is met: the rest is not looked at.
    """
    while head < search.lengths[QUEUE]:
        node = search.queue[head]
        head += 1
        if barred[node]:
            return False
        v = vertex_of(node)
        # direction is 0 or 1, and so is is_out: an out-node going forward, an in-node going backward.
        wide = is_out(node) != direction
        if wide:
            # The link through v is full, so it can be undone.
            if flow.carries[v]:
                add_node(node ^ 1, search)
            for j in range(net.indptr[v], net.indptr[v + 1]):
                w = net.neighbours[j]
                if net.inside[w]:
                    # An edge at a vertex that can be left belongs to p, whatever its other end: that end is in both.
                    if not search.claimed[net.edges[j]]:
                        claim(net.edges[j], weights, search)
                    add_node(out_node(w) if direction == BACKWARD else in_node(w), search)
            if search.weight[0] > room[0] or search.weight[1] > room[1]:
                return False
        elif not flow.carries[v]:
            # node ^ 1 is the other node of v: the link between them is free, and can be used.
            add_node(node ^ 1, search)
        elif direction == FORWARD and flow.pred[v] >= 0:
            add_node(out_node(flow.pred[v]), search)
        elif direction == BACKWARD and flow.succ[v] >= 0:
            add_node(in_node(flow.succ[v]), search)
    return True


@kernel(counted=False)
def take_back(queue_length, claims_length, weights, search):
    """Forget what was reached and claimed since the lengths were these."""
    # Only what came since: clearing everything for each vertex that is tried would be quadratic.
    for i in range(queue_length, search.lengths[QUEUE]):
        search.reached[search.queue[i]] = False
    for i in range(claims_length, search.lengths[CLAIMS]):
        e = search.claims[i]
        search.claimed[e] = False
        search.weight[0] -= weights[e, 0]
        search.weight[1] -= weights[e, 1]
    # Shortened lists are enough: what stands behind their ends is written over.
    search.lengths[QUEUE], search.lengths[CLAIMS] = queue_length, claims_length


def cut_pair(pair: Pair, num_vertices: int) -> int:
    """Write a better border to `pair.sides`, if there is one; returns how many vertices fewer are in both parts.

    `pair.free` becomes what was free in the last region.
    """
    net, region = open_region(pair, num_vertices)
    if region.sizes[SHARED] == 0:  # nothing to save
        return 0
    flow, scratch = no_flow(num_vertices)
    reaches = [nothing_reached(num_vertices, len(pair.ends)) for _ in range(2)]
    saved = _search(pair, net, region, flow, scratch, *reaches)
    for side in range(2):
        pair.free[side] = region.free_weight[side, region.depths[side], 0] / max(region.loads[side, 0], 1)
    return saved


@kernel(counted=False)
def _search(pair, net, region, flow, scratch, forward, backward):
    """Shrink the region until one of its minimum separators is within the limits; returns the vertices saved."""
    # The present border separates the terminals in every region, so no flow has more paths than it has vertices.
    at_most = region.sizes[SHARED]
    paths = 0
    for _ in range(TRIES):
        list_members(region)
        members = region.members[: region.sizes[MEMBERS]]
        # As many paths as there are vertices in a minimum separator; as many as are shared now save nothing.
        paths += augment(net, flow, scratch, members, at_most - paths)
        if paths == at_most:
            return 0
        heavy = _balance(pair, net, region, members, flow, forward, backward)
        if heavy == BALANCED:
            heavy = _check_copies(pair, region, members, forward)
        if heavy == BALANCED:
            for e in range(pair.ends.shape[0]):
                if net.inside[pair.ends[e, 0]] and net.inside[pair.ends[e, 1]]:
                    # An edge that p does not claim is q's, also where it could be on either side.
                    pair.sides[e] = P if forward.claimed[e] else Q
            return at_most - paths
        # The part that would get too much gets it from the other one: fix more of what that one has.
        giving = Q if heavy == TOO_MUCH_P else P
        if region.depths[giving] == 0:
            # No free vertex is left on that side: fixing more of the other one leads to another border as well.
            giving = 1 - giving
        if region.depths[giving] == 0:
            return 0
        # `paths` stays: paths become shorter, none is lost (see `shrink`), and the next search adds to them.
        shrink(giving, region, net, flow)
    return 0


@kernel(counted=False)
def _balance(pair, net, region, members, flow, forward, backward):
    """Find a minimum separator within the limits: `forward` then has p's side. Else which part has too much.

    The separator nearest to the source gives p the fewest edges, the one nearest to the sink gives q the fewest. If
    that is too much for either already, no other separator helps. Between the two, p's side grows vertex by vertex.
    """
    forget(forward)
    forget(backward)
    for i in range(members.shape[0]):
        if net.from_source[members[i]]:
            add_node(in_node(members[i]), forward)
        if net.to_sink[members[i]]:
            add_node(out_node(members[i]), backward)
    # What the sources reach and what reaches a sink have no node in common: that would be one more path.
    if not spread(net, flow, pair.weights, 0, forward, FORWARD, backward.reached, _room(pair, region, P)):
        return TOO_MUCH_P
    if not _leaves_too_much(pair, region, forward) or _even_out(pair, net, region, members, forward):
        return BALANCED
    # q has too much with the smallest side of p. The other extreme: what a sink can be reached from is q's in any case.
    if not spread(net, flow, pair.weights, 0, backward, BACKWARD, forward.reached, _room(pair, region, Q)):
        return TOO_MUCH_Q
    if _grow(pair, net, region, members, flow, forward, backward):
        return BALANCED
    if _even_out(pair, net, region, members, forward):
        return BALANCED
    # No separator of this size will do. Shrink where more edges are free: there the next border can differ most.
    q_freer = region.free_weight[Q, region.depths[Q], 0] > region.free_weight[P, region.depths[P], 0]
    return TOO_MUCH_P if q_freer else TOO_MUCH_Q


@kernel(counted=False)
def _grow(pair, net, region, members, flow, forward, backward):
    """Give p one vertex after the other, with all that must follow it for a minimum separator, until q has not too
    much; returns whether that is reached. What would be too much for p is taken back."""
    misses, own, shared, room = 0, region.depths[P], region.sizes[SHARED], _room(pair, region, P)
    for i in range(members.shape[0]):
        # p's own vertices, farthest first, then shared ones, then q's, nearest first: from p's side to q's.
        if i < own:
            v = region.orders[P, own - 1 - i]
        elif i < own + shared:
            v = members[i - own]
        else:
            v = members[i]
        # It is p's already; or a sink can be reached from it, so that with v on p's side the separator would be larger.
        if forward.reached[out_node(v)] or backward.reached[out_node(v)]:
            continue
        queue_length, claims_length = forward.lengths[QUEUE], forward.lengths[CLAIMS]
        add_node(out_node(v), forward)
        if not spread(net, flow, pair.weights, queue_length, forward, FORWARD, backward.reached, room):
            # What v drags along comes as a whole, so a vertex that brings too much does not rule out the next one. But
            # whatever drags v along brings as much: from now on that ends at v.
            take_back(queue_length, claims_length, pair.weights, forward)
            backward.reached[out_node(v)] = True
            misses += 1
            if misses == MISSES:
                return False
        elif not _leaves_too_much(pair, region, forward):
            return True
    return False


@inline(counted=False)
def _on_separator(v, forward):
    """Whether v can be arrived at from p's side, but not left: it is in both parts."""
    return forward.reached[in_node(v)] and not forward.reached[out_node(v)]


@kernel(counted=False)
def _even_out(pair, net, region, members, forward):
    """Edges between vertices of the separator cost nothing on either side: give p as many as q has too many."""
    # Both ends of such an edge are in both parts whichever side it is on.
    claims_length = forward.lengths[CLAIMS]
    for side in range(2):  # those that were p's first
        for i in range(members.shape[0]):
            v = members[i]
            if not _on_separator(v, forward):
                continue
            for j in range(net.indptr[v], net.indptr[v + 1]):
                w, e = net.neighbours[j], net.edges[j]
                between = net.inside[w] and _on_separator(w, forward)
                if between and pair.sides[e] == side and not forward.claimed[e]:
                    claim(e, pair.weights, forward)
                    if not _leaves_too_much(pair, region, forward) and not _exceeds(pair, region, P, forward):
                        return True
    # Claims only: no vertex was reached, and the queue is as long as it was.
    take_back(forward.lengths[QUEUE], claims_length, pair.weights, forward)
    return False


@inline(counted=False)
def _load(region, side, kind, search):
    """Weight of what is fixed to this part, and of what it claims."""
    return _fixed(region, side, kind) + search.weight[kind]


@inline(counted=False)
def _fixed(region, side, kind):
    """Weight of this part's edges that are not free."""
    return region.loads[side, kind] - region.free_weight[side, region.depths[side], kind]


@inline(counted=False)
def _room(pair, region, side):
    """How much of each weight this part may claim."""
    return pair.max_weight[side, 0] - _fixed(region, side, 0), pair.max_weight[side, 1] - _fixed(region, side, 1)


@inline(counted=False)
def _exceeds(pair, region, side, search):
    """Whether this part has more than it may."""
    first, second = _load(region, side, 0, search), _load(region, side, 1, search)
    return first > pair.max_weight[side, 0] or second > pair.max_weight[side, 1]


@inline(counted=False)
def _leaves_too_much(pair, region, forward):
    """Whether what p does not have is more than q may have."""
    for kind in range(2):
        # q has all that p has not: its fixed edges, and the free ones that p does not claim.
        total = region.loads[P, kind] + region.loads[Q, kind]
        if total - _load(region, P, kind, forward) > pair.max_weight[Q, kind]:
            return True
    return False


@kernel(counted=False)
def _check_copies(pair, region, members, forward):
    """Whether both parts would be within their limits of copies, or no farther beyond than now; else which is not.

    What the limits are compared with is counted from now on: only members can change.
    """
    now = region.num_copies
    all_p, all_q, own_p, own_q = now[P, COPIES], now[Q, COPIES], now[P, OWNED], now[Q, OWNED]
    for i in range(members.shape[0]):
        v = members[i]
        was_p = i < region.sizes[SHARED] + region.depths[P]  # members are in the order of `list_members`
        was_q = i < region.sizes[SHARED] or not was_p
        # p has what its side arrives at, q what it cannot leave: a vertex of the separator is in both.
        in_p = forward.reached[in_node(v)] or forward.reached[out_node(v)]
        in_q = not forward.reached[out_node(v)]
        all_p += np.int64(in_p) - np.int64(was_p)
        all_q += np.int64(in_q) - np.int64(was_q)
        if pair.only_here[v]:
            own_p += np.int64(in_p and not in_q) - np.int64(was_p and not was_q)
            own_q += np.int64(in_q and not in_p) - np.int64(was_q and not was_p)
    if _is_beyond(pair, region, P, all_p, own_p):
        return TOO_MUCH_P
    if _is_beyond(pair, region, Q, all_q, own_q):
        return TOO_MUCH_Q
    return BALANCED


@inline(counted=False)
def _is_beyond(pair, region, side, copies, owned):
    """Whether a part with so many copies, so many of them of vertices in no other, is beyond a limit and farther than
    now."""
    most, now = pair.max_copies[side], region.num_copies[side]
    elsewhere = copies - owned
    return (
        copies > max(most[COPIES], now[COPIES])
        or owned > max(most[OWNED], now[OWNED])
        or elsewhere > max(most[ELSEWHERE], now[COPIES] - now[OWNED])
    )
