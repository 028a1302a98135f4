"""Minimum vertex separators by maximum flow, kept while terminals are added.

The network: every vertex v is split into two *nodes*, `in_node(v)`, where paths arrive, and `out_node(v)`, where they
leave, with a link of capacity 1 between them; every edge (v, w) is a link of any capacity from out(v) to in(w), and one
from out(w) to in(v). A path takes the links in turn

    source -> in(a) -> out(a) -> in(b) -> out(b) -> sink

so that at most one path passes a vertex, and the minimum cut of the network is a minimum set of vertices.

A flow therefore needs no numbers on links. `Flow` holds for each vertex whether a path passes, and its neighbours on
that path. Invariants, between calls:

1. carries[v] if and only if exactly one path passes v; then pred[v] and succ[v] are v's neighbours on it, -1 where the
   path begins at v (a source) or ends there (a sink). Where carries[v] is false, pred[v] and succ[v] mean nothing.
2. pred and succ agree: succ[pred[v]] == v and pred[succ[v]] == v, for neighbours that are not -1.
3. All vertices on paths are `inside`.

Residual steps, from which paths are found, go between nodes:

    in(v), v carries nothing    ->  out(v)             use its capacity
    in(v), v carries a path     ->  out(pred[v])       arrive where that path arrived, and undo its last step instead
    out(v)                      ->  in(w), any edge    edges have any capacity
    out(v), v carries a path    ->  in(v)              undo the passage of v itself

Shapes: N vertices, E edges, H half edges (each edge from both ends).
Source: ours; flow: Dinitz 1970, growing terminals: Hamann and Strasser 2018 (FlowCutter).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel

NOT_REACHED, DEAD_END = -1, -2  # levels of nodes; others are distances to the sinks
NO_VERTEX = -1


class Net(NamedTuple):
    """indptr: int32 [N + 1], neighbours, edges: int32 [H] (the edge of each half); inside: bool [N], other vertices
    are not in the network; from_source, to_sink: bool [N]."""

    indptr: np.ndarray
    neighbours: np.ndarray
    edges: np.ndarray
    inside: np.ndarray
    from_source: np.ndarray
    to_sink: np.ndarray


class Flow(NamedTuple):
    """carries: bool [N], whether a path passes; pred, succ: int32 [N], its neighbours on the path (-1: a terminal)."""

    carries: np.ndarray
    pred: np.ndarray
    succ: np.ndarray


class Scratch(NamedTuple):
    """Of nodes, int32 [2 N + 1] each: level, its distance to the sinks; queue; cursor, its next step; path, the steps
    taken."""

    level: np.ndarray
    queue: np.ndarray
    cursor: np.ndarray
    path: np.ndarray


def no_flow(num_vertices: int) -> tuple[Flow, Scratch]:
    """A flow without any path, and what `augment` works with."""
    flow = Flow(np.zeros(num_vertices, dtype=np.bool_), *np.full((2, num_vertices), NO_VERTEX, dtype=np.int32))
    scratch = Scratch(*np.empty((4, 2 * num_vertices + 1), dtype=np.int32))
    scratch.level[:] = NOT_REACHED
    return flow, scratch


@inline(counted=False)
def in_node(v):
    return 2 * v


@inline(counted=False)
def out_node(v):
    return 2 * v + 1


@inline(counted=False)
def vertex_of(node):
    return node >> 1


@inline(counted=False)
def is_out(node):
    return node & 1


@inline(counted=False)
def _enqueue(node, node_level, tail, scratch):
    """Give a node its level if it has none yet; returns the new length of the queue."""
    if scratch.level[node] >= 0:
        return tail
    scratch.level[node] = node_level
    scratch.cursor[node] = 0
    scratch.queue[tail] = node
    return tail + 1


@kernel(counted=False)
def augment(net, flow, scratch, members, limit):
    """Add paths until there are no more, or `limit` of them; returns how many. members: the vertices inside.

    Dinitz: levels by breadth first search, then as many paths along them as there are, then levels again. Levels are
    distances to the sinks, so that every step to a lower one leads on until a path has taken it.
    """
    added = 0
    while added < limit:
        # A round adds disjoint shortest paths until no path of this length is left: the next round's are longer.
        depth, reached = _set_levels(net, flow, scratch, members)
        if depth >= 0:
            for i in range(members.shape[0]):
                v = members[i]
                # Each source is tried once, because at most one path passes a vertex.
                nearest = net.from_source[v] and scratch.level[in_node(v)] == depth
                if nearest and _add_path(v, net, flow, scratch):
                    added += 1
                    if added == limit:
                        break
        for i in range(reached):
            scratch.level[scratch.queue[i]] = NOT_REACHED
        if depth < 0:
            break
    return added


@inline(counted=False)
def _set_levels(net, flow, scratch, members):
    """Breadth first from the sinks, against the steps; returns the level of the nearest source, or -1, and how many
    nodes have a level. All levels are `NOT_REACHED` before."""
    level, queue = scratch.level, scratch.queue
    tail = 0
    for i in range(members.shape[0]):
        if net.to_sink[members[i]]:
            tail = _enqueue(out_node(members[i]), 0, tail, scratch)
    head, depth = 0, -1
    while head < tail:
        node = queue[head]
        head += 1
        v, next_level = vertex_of(node), level[node] + 1
        if depth >= 0 and level[node] >= depth:  # nothing beyond the nearest source is on a shortest path
            break
        if is_out(node):
            if not flow.carries[v]:
                tail = _enqueue(in_node(v), next_level, tail, scratch)
            elif flow.succ[v] >= 0:
                tail = _enqueue(in_node(flow.succ[v]), next_level, tail, scratch)
        else:
            if net.from_source[v]:  # also where v carries a path from elsewhere: a new one may take over its rest
                # The level of the source; others of this level may be sources too, and are still looked at.
                depth = level[node]
                continue
            if flow.carries[v]:
                tail = _enqueue(out_node(v), next_level, tail, scratch)
            for j in range(net.indptr[v], net.indptr[v + 1]):
                w = net.neighbours[j]
                if net.inside[w]:
                    tail = _enqueue(out_node(w), next_level, tail, scratch)
    return depth, tail


@inline(counted=False)
def _add_path(start, net, flow, scratch):
    """Look for a path down the levels, depth first, and add it; returns whether there is one."""
    level, path = scratch.level, scratch.path
    # Not recursive: paths are as long as the region is deep. path[: top + 1] is the stack.
    top = 0
    path[0] = in_node(start)
    while top >= 0:
        node = path[top]
        if level[node] == 0:
            _apply(path, top, flow)
            return True
        to = _next_node(node, net, flow, scratch)
        if to >= 0:
            top += 1
            path[top] = to
        else:
            level[node] = DEAD_END  # no other path of this round comes here again
            top -= 1
    return False


# cursor[node] counts the steps of a node that were tried in this round, over all paths: those of an out-node are its
# neighbours, then undoing (step number `degree`); an in-node has one. So a round looks at each step once.
@inline(counted=False)
def _next_node(node, net, flow, scratch):
    """The next node one level lower, by a step of `node` that was not tried yet; -1 if there is none."""
    level, cursor = scratch.level, scratch.cursor
    v, next_level = vertex_of(node), level[node] - 1
    if not is_out(node):
        if cursor[node] == 0:
            cursor[node] = 1
            # The one residual step from in(v); none where a path begins at v: there is nothing before it to undo.
            to = out_node(v) if not flow.carries[v] else out_node(flow.pred[v])
            if (not flow.carries[v] or flow.pred[v] >= 0) and level[to] == next_level:
                return to
        return -1
    degree = net.indptr[v + 1] - net.indptr[v]
    while cursor[node] <= degree:
        i = cursor[node]
        cursor[node] += 1
        if i < degree:
            w = net.neighbours[net.indptr[v] + i]
            if net.inside[w] and level[in_node(w)] == next_level:
                return in_node(w)
        elif flow.carries[v] and level[in_node(v)] == next_level:
            return in_node(v)
    return -1


# A step that undoes needs no write of its own: the vertices around it get their new neighbours when the new unit
# arrives (pred), and when it has left (succ of `last`). Only `carries` of a vertex whose passage is undone must go.
@inline(counted=False)
def _apply(path, top, flow):
    """Add the steps path[0 .. top] to the flow, from a source to a sink; restores the invariants of the header."""
    last = NO_VERTEX  # the vertex that the new unit of flow left last
    for i in range(top + 1):
        node = path[i]
        v = vertex_of(node)
        if is_out(node):
            if i < top and path[i + 1] == in_node(v):  # undone: the old path has been led another way around v
                flow.carries[v] = False
            else:
                last = v
        else:
            undone = i > 0 and path[i - 1] == out_node(v)
            if not undone:  # the new unit arrives here, in place of the old one if v carries a path
                flow.pred[v] = last
                if last >= 0:
                    flow.succ[last] = v
            if path[i + 1] == out_node(v):
                flow.carries[v] = True
            else:  # on to out(pred[v]), from where the old unit came: it goes another way from there
                last = vertex_of(path[i + 1])
    # Also where an old path went on from here: its rest has been given to the new unit, and it ends here instead.
    flow.succ[vertex_of(path[top])] = NO_VERTEX
