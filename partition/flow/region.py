"""The region around the border of two parts: which edges are free to change sides, and the terminals around it.

Vertices in both parts are the border. From there each part's own vertices are taken in breadth-first order, along its
own edges; an edge is free where both of its ends are inside.

        p's own vertices         in both         q's own vertices
    . . . d3 | d2    d1     |     s  s  s   |     d1    d2 | d3 . . .
     source  |              the region                     |  sink

The depth of a vertex is its place in that order, from 1; a vertex in both parts has depth 0. A region is given by two
depths, one for each part, and the depth of an edge is that of its farther end.

Shapes: N vertices, E edges and H half edges of the two parts p and q; sides: 0 is p, 1 is q.
Source: ours; the regions are those of KaHyPar's flow refinement (Heuer, Sanders, Schlag 2018).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.partition.flow.max_flow import NO_VERTEX, Net

SHRINK = 0.7
SHARED, MEMBERS = 0, 1  # places of Region.sizes
COPIES, OWNED, ELSEWHERE = 0, 1, 2  # columns of Region.num_copies (first two) and Pair.max_copies
P, Q = 0, 1  # sides
BOTH = 1 << P | 1 << Q  # sides of a vertex in both parts, as bits


class Pair(NamedTuple):
    """Two parts: ends int32 [E, 2], sides uint8 [E], weights float32 [E, 2] (arcs, owned vertices) of the edges;
    only_here: bool [N], vertices in no third part; of p and of q: max_weight float64 [2, 2], most of each weight;
    max_copies float64 [2, 3], most vertices, most that are in no other part, and most that are; free float64 [2], of
    the edges, those that are free at first."""

    ends: np.ndarray
    sides: np.ndarray
    weights: np.ndarray
    only_here: np.ndarray
    max_weight: np.ndarray
    max_copies: np.ndarray
    free: np.ndarray


class Region(NamedTuple):
    """Which vertices may be free: members int32 [N], those that are: shared first, then p's and q's.

    depth: int32 [N], 0 where shared, N + 1: never free; orders: int32 [2, N], the own vertices of each part by depth;
    free_weight: float64 [2, N + 2, 2], weight of the edges that are free with so many of the order; loads: float64
    [2, 2], weight of all edges; num_copies: int64 [2, 2], as the first of `max_copies`; depths: int64 [2], how many of
    each order are free; sizes: int64 [2], shared vertices, members.
    """

    members: np.ndarray
    depth: np.ndarray
    orders: np.ndarray
    free_weight: np.ndarray
    loads: np.ndarray
    num_copies: np.ndarray
    depths: np.ndarray
    sizes: np.ndarray


def open_region(pair: Pair, num_vertices: int) -> tuple[Net, Region]:
    """The first region, `pair.free` of each part's edges, and the net of its vertices."""
    halves, shape = 2 * len(pair.ends), (2, num_vertices)
    indptr = np.zeros(num_vertices + 1, dtype=np.int32)
    net = Net(indptr, *np.empty((2, halves), dtype=np.int32), *np.zeros((3, num_vertices), dtype=np.bool_))
    region = Region(
        members=np.empty(num_vertices, dtype=np.int32),
        depth=np.empty(num_vertices, dtype=np.int32),
        orders=np.empty(shape, dtype=np.int32),
        free_weight=np.zeros((2, num_vertices + 2, 2)),
        loads=np.zeros((2, 2)),
        num_copies=np.zeros((2, 2), dtype=np.int64),
        depths=np.zeros(2, dtype=np.int64),
        sizes=np.zeros(2, dtype=np.int64),
    )
    _link(pair.ends, net)
    _open(pair, net, region)
    return net, region


@kernel(counted=False)
def _link(ends, net):
    """Edges from both ends, a self-loop once."""
    indptr = net.indptr
    last = indptr.shape[0] - 1
    for e in range(ends.shape[0]):
        indptr[ends[e, 0]] += 1
        if ends[e, 0] != ends[e, 1]:
            indptr[ends[e, 1]] += 1
    # indptr[v] becomes the end of v's half edges, and their beginning once they have been filled in from behind.
    for v in range(last):
        indptr[v + 1] += indptr[v]
    indptr[last] = indptr[last - 1]
    for e in range(ends.shape[0] - 1, -1, -1):
        for i in range(1 if ends[e, 0] == ends[e, 1] else 2):
            v = ends[e, i]
            indptr[v] -= 1
            net.neighbours[indptr[v]], net.edges[indptr[v]] = ends[e, 1 - i], e


@kernel(counted=False)
def _open(pair, net, region):
    depth, num_vertices, shared = region.depth, region.depth.shape[0], 0
    # Loads of both sides; depth[v] = the sides where v has an edge, as bits (for now).
    depth[:] = 0
    for e in range(pair.ends.shape[0]):
        side = pair.sides[e]
        depth[pair.ends[e, 0]] |= 1 << side
        depth[pair.ends[e, 1]] |= 1 << side
        region.loads[side, 0] += pair.weights[e, 0]
        region.loads[side, 1] += pair.weights[e, 1]
    # Copies of both sides; depth 0 for the shared vertices, N + 1 for all others until they are found.
    for v in range(num_vertices):
        sides = depth[v]
        for side in range(2):
            region.num_copies[side, COPIES] += (sides >> side) & 1
            # Not in any third part either: it must be owned here, or there would be one copy more.
            region.num_copies[side, OWNED] += pair.only_here[v] and sides == 1 << side
        if sides == BOTH:
            region.members[shared] = v
            shared += 1
        depth[v] = 0 if sides == BOTH else num_vertices + 1
    region.sizes[SHARED] = shared
    for side in range(2):
        found = _order_by_distance(side, pair, net, region)
        _weigh_depths(side, pair, region)
        # Opened until `pair.free` of the part's edges are free, by arcs; the last vertex may take it beyond that.
        d = 0
        while d < found and region.free_weight[side, d, 0] < pair.free[side] * region.loads[side, 0]:
            net.inside[region.orders[side, d]] = True
            d += 1
        region.depths[side] = d
    for i in range(shared):
        net.inside[region.members[i]] = True
    # The ends of edges that are not free are terminals of the edge's side: what lies beyond them stays there.
    for e in range(pair.ends.shape[0]):
        u, v = pair.ends[e, 0], pair.ends[e, 1]
        # Both ends are marked: the one outside is not in the network, so its mark has no effect.
        if not (net.inside[u] and net.inside[v]):
            if pair.sides[e] == Q:
                net.to_sink[u] = net.to_sink[v] = True
            else:
                net.from_source[u] = net.from_source[v] = True


@inline(counted=False)
def _order_by_distance(side, pair, net, region):
    """orders[side] = the own vertices of a part, breadth first from the shared ones; returns how many are found."""
    order, depth, found = region.orders[side], region.depth, 0
    num_vertices, shared = depth.shape[0], region.sizes[SHARED]
    # The order is its own queue; the shared vertices stand before it, at negative places.
    for head in range(-shared, num_vertices):
        if head >= found:
            break
        v = order[head] if head >= 0 else region.members[head + shared]
        for j in range(net.indptr[v], net.indptr[v + 1]):
            w = net.neighbours[j]
            # Depth N + 1: not found yet. Along this side's edges only its own vertices and shared ones (depth 0) are
            # met.
            if pair.sides[net.edges[j]] == side and depth[w] > num_vertices:
                order[found] = w
                found += 1
                depth[w] = found
    return found


@inline(counted=False)
def _weigh_depths(side, pair, region):
    """free_weight[side, d] = weight of the part's edges of depth at most d."""
    depth, weight = region.depth, region.free_weight
    for e in range(pair.ends.shape[0]):
        if pair.sides[e] == side:
            # Both ends must be inside. Edges that no depth frees are put down at N + 1, which the running sum below
            # leaves out.
            farther = max(depth[pair.ends[e, 0]], depth[pair.ends[e, 1]])
            weight[side, farther, 0] += pair.weights[e, 0]
            weight[side, farther, 1] += pair.weights[e, 1]
    for d in range(depth.shape[0]):
        weight[side, d + 1, 0] += weight[side, d, 0]
        weight[side, d + 1, 1] += weight[side, d, 1]


@inline(counted=False)
def list_members(region):
    """members = the shared vertices, then p's free ones, then q's, each by depth."""
    found = region.sizes[SHARED]
    for side in range(2):
        for i in range(region.depths[side]):
            region.members[found] = region.orders[side, i]
            found += 1
    region.sizes[MEMBERS] = found


@kernel(counted=False)
def shrink(side, region, net, flow):
    """Fix the edges of this part's farthest free vertices; paths through these end, or begin, behind them.

    The flow stays valid: what is left of a cut path leads between terminals, because the neighbours of what is fixed
    become terminals. So the next search goes on from it instead of from nothing.
    """
    # Rounded down, so at least one vertex less.
    fewer = np.int64(SHRINK * region.depths[side])
    # By depth, not by what must be given: that was tried and was no better (docs/LOG.md).
    for i in range(fewer, region.depths[side]):
        v = region.orders[side, i]
        net.inside[v] = False
        for j in range(net.indptr[v], net.indptr[v + 1]):
            if side == Q:
                net.to_sink[net.neighbours[j]] = True
            else:
                net.from_source[net.neighbours[j]] = True
        if not flow.carries[v]:
            continue
        # Of q: the path now ends at the vertex before v, and v and all behind it are taken off. Of p: mirrored.
        if side == Q:
            if flow.pred[v] >= 0:
                flow.succ[flow.pred[v]] = NO_VERTEX
        elif flow.succ[v] >= 0:
            flow.pred[flow.succ[v]] = NO_VERTEX
        while v >= 0:
            flow.carries[v] = False
            v = flow.succ[v] if side == Q else flow.pred[v]
    region.depths[side] = fewer
