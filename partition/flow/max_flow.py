"""Minimum vertex separators by maximum flow, kept while terminals are added.

Every vertex lets one unit of flow through; edges let any amount. So at most one path of the flow passes a vertex, and a
flow is one predecessor and one successor for each vertex. A vertex has two states, arrived at (2 v) and left from
(2 v + 1); residual steps go between states.

Shapes: N vertices, H half edges (each edge from both ends).
Source: ours; flow: Dinitz 1970, growing terminals: Hamann and Strasser 2018 (FlowCutter).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel


class Net(NamedTuple):
    """indptr: int32 [N + 1], neighbours, edges: int32 [H] (the edge of each half); inside: bool [N], other vertices
    are not there; from_source, to_sink: bool [N]."""

    indptr: np.ndarray
    neighbours: np.ndarray
    edges: np.ndarray
    inside: np.ndarray
    from_source: np.ndarray
    to_sink: np.ndarray


class Flow(NamedTuple):
    """full: bool [N], whether a path passes; before, after: int32 [N], its neighbours on the path (-1: a terminal)."""

    full: np.ndarray
    before: np.ndarray
    after: np.ndarray


class Scratch(NamedTuple):
    """level, queue, cursor, path: int32 [2 N + 1] each."""

    level: np.ndarray
    queue: np.ndarray
    cursor: np.ndarray
    path: np.ndarray


@kernel(_nrt=False)
def raise_flow(net, flow, scratch, members, limit):
    """Add paths until there are no more, or `limit` of them; returns how many. members: the vertices inside."""
    added = 0
    while added < limit:
        depth = _set_levels(net, flow, scratch, members)
        if depth < 0:
            break
        for i in range(members.shape[0]):
            v = members[i]
            if net.from_source[v] and scratch.level[2 * v] == 0 and _add_path(v, depth, net, flow, scratch):
                added += 1
                if added == limit:
                    break
    return added


@inline(_nrt=False)
def _set_levels(net, flow, scratch, members):
    """Breadth first from the sources; returns the level of the nearest sink, or -1."""
    level, queue = scratch.level, scratch.queue
    tail = 0
    for i in range(members.shape[0]):
        v = members[i]
        level[2 * v] = level[2 * v + 1] = -1
        scratch.cursor[2 * v] = scratch.cursor[2 * v + 1] = 0
        if net.from_source[v]:
            level[2 * v] = 0
            queue[tail] = 2 * v
            tail += 1
    head, depth = 0, -1
    while head < tail:
        state = queue[head]
        head += 1
        v, next_level = state >> 1, level[state] + 1
        if depth >= 0 and level[state] >= depth:
            break
        if state & 1:
            if net.to_sink[v]:
                depth = level[state]
                continue
            if flow.full[v] and level[2 * v] < 0:
                level[2 * v] = next_level
                queue[tail] = 2 * v
                tail += 1
            for j in range(net.indptr[v], net.indptr[v + 1]):
                w = net.neighbours[j]
                if net.inside[w] and level[2 * w] < 0:
                    level[2 * w] = next_level
                    queue[tail] = 2 * w
                    tail += 1
        else:
            to = _onward(v, flow)
            if to >= 0 and level[to] < 0:
                level[to] = next_level
                queue[tail] = to
                tail += 1
    return depth


@inline(_nrt=False)
def _onward(v, flow):
    """The one state after arriving at v: leaving it, or, where a path passes, undoing that path's last step."""
    if not flow.full[v]:
        return 2 * v + 1
    return 2 * flow.before[v] + 1 if flow.before[v] >= 0 else -1


@inline(_nrt=False)
def _add_path(start, depth, net, flow, scratch):
    """Look for a path along the levels, depth first, and add it; returns whether there is one."""
    level, cursor, path = scratch.level, scratch.cursor, scratch.path
    top = 0
    path[0] = 2 * start
    while top >= 0:
        state = path[top]
        v, to = state >> 1, -1
        if state & 1:
            if net.to_sink[v]:
                _apply(path, top, flow)
                return True
            degree = net.indptr[v + 1] - net.indptr[v]
            while to < 0 and level[state] < depth and cursor[state] <= degree:
                i = cursor[state]
                cursor[state] += 1
                if i < degree:
                    w = net.neighbours[net.indptr[v] + i]
                    if net.inside[w] and level[2 * w] == level[state] + 1:
                        to = 2 * w
                elif flow.full[v] and level[2 * v] == level[state] + 1:
                    to = 2 * v
        elif cursor[state] == 0 and level[state] < depth:
            cursor[state] = 1
            to = _onward(v, flow)
            if to >= 0 and level[to] != level[state] + 1:
                to = -1
        if to >= 0:
            top += 1
            path[top] = to
        else:
            level[state] = -2
            top -= 1
    return False


@inline(_nrt=False)
def _apply(path, top, flow):
    last = -1  # the vertex that the unit of flow left last
    for i in range(top + 1):
        state = path[i]
        v = state >> 1
        if state & 1:
            if i < top and path[i + 1] == state - 1:
                flow.full[v] = False
            else:
                last = v
        else:
            undone = i > 0 and path[i - 1] == state + 1
            if not undone:
                flow.before[v] = last
                if last >= 0:
                    flow.after[last] = v
            if path[i + 1] == state + 1:
                flow.full[v] = True
            else:
                last = path[i + 1] >> 1
    flow.after[path[top] >> 1] = -1


class Reach(NamedTuple):
    """reached: bool [2 N], states; queue: int32 [2 N]; claimed: bool [E]; claims: int32 [E], the claimed edges as they
    came; ends: int64 [2], the lengths of queue and claims; weight: float64 [2], of the claimed edges."""

    reached: np.ndarray
    queue: np.ndarray
    claimed: np.ndarray
    claims: np.ndarray
    ends: np.ndarray
    weight: np.ndarray


def nothing_reached(num_vertices: int, num_edges: int) -> Reach:
    reached, claimed = np.zeros(2 * num_vertices, dtype=np.bool_), np.zeros(num_edges, dtype=np.bool_)
    queue, claims = np.empty(2 * num_vertices, dtype=np.int32), np.empty(num_edges, dtype=np.int32)
    return Reach(reached, queue, claimed, claims, np.zeros(2, dtype=np.int64), np.zeros(2))


@inline(_nrt=False)
def put(state, reach):
    """Spread from this state too, next time."""
    if not reach.reached[state]:
        reach.reached[state] = True
        reach.queue[reach.ends[0]] = state
        reach.ends[0] += 1


@inline(_nrt=False)
def claim(e, weights, reach):
    reach.claimed[e] = True
    reach.claims[reach.ends[1]] = e
    reach.ends[1] += 1
    reach.weight[0] += weights[e, 0]
    reach.weight[1] += weights[e, 1]


@inline(_nrt=False)
def _claim_around(v, net, weights, reach, leaving):
    """Claim v's edges and put their other ends: as left from, or as arrived at."""
    for j in range(net.indptr[v], net.indptr[v + 1]):
        w = net.neighbours[j]
        if net.inside[w]:
            if not reach.claimed[net.edges[j]]:
                claim(net.edges[j], weights, reach)
            put(2 * w + leaving, reach)


@kernel(_nrt=False)
def spread_forward(net, flow, weights, head, reach):
    """Spread from the states queue[head:] along residual steps; the edges of vertices that can be left are claimed."""
    while head < reach.ends[0]:
        state = reach.queue[head]
        head += 1
        v = state >> 1
        if state & 1:
            if flow.full[v]:
                put(2 * v, reach)
            _claim_around(v, net, weights, reach, 0)
        else:
            to = _onward(v, flow)
            if to >= 0:
                put(to, reach)


@kernel(_nrt=False)
def spread_backward(net, flow, weights, head, reach):
    """The same against the steps: to where a sink can be reached from; edges of vertices that can be arrived at."""
    while head < reach.ends[0]:
        state = reach.queue[head]
        head += 1
        v = state >> 1
        if state & 1 == 0:
            if flow.full[v]:
                put(2 * v + 1, reach)
            _claim_around(v, net, weights, reach, 1)
        elif not flow.full[v]:
            put(2 * v, reach)
        elif flow.after[v] >= 0:
            put(2 * flow.after[v], reach)


@kernel(_nrt=False)
def take_back(queue_end, claims_end, weights, reach):
    """Forget what was reached and claimed since the ends were these."""
    for i in range(queue_end, reach.ends[0]):
        reach.reached[reach.queue[i]] = False
    for i in range(claims_end, reach.ends[1]):
        e = reach.claims[i]
        reach.claimed[e] = False
        reach.weight[0] -= weights[e, 0]
        reach.weight[1] -= weights[e, 1]
    reach.ends[0], reach.ends[1] = queue_end, claims_end
