"""The region around the border of two parts: which edges are free to change sides, and the terminals around it.

Vertices in both parts are the border. From there each part's own vertices are taken in breadth-first order, along its
own edges; an edge is free where both of its ends are inside.

Shapes: N vertices, E edges and H half edges of the two parts p and q; sides: 0 is p, 1 is q.
Source: ours; the regions are those of KaHyPar's flow refinement (Heuer, Sanders, Schlag 2018).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.partition.flow.max_flow import Net

FREE = 0.6  # of a part's edges, at first
SHRINK = 0.7


class Pair(NamedTuple):
    """Two parts: ends int32 [E, 2], sides uint8 [E], weights float32 [E, 2] (arcs, owned vertices) of the edges;
    alone: bool [N], vertices in no third part; of p and of q: limits float64 [2, 2], most of each weight; most float64
    [2, 2], vertices, and vertices that are in no other part."""

    ends: np.ndarray
    sides: np.ndarray
    weights: np.ndarray
    alone: np.ndarray
    limits: np.ndarray
    most: np.ndarray


class Region(NamedTuple):
    """Which vertices may be free: members int32 [N], those that are: shared first, then p's and q's.

    place: int32 [N], 0 where shared, else 1 + place in the order of its part, nearest first (N + 1: never free);
    orders: int32 [2, N]; weight: float64 [2, N + 1, 2], edges that are free with so many of the order; loads: float64
    [2, 2]; held: int64 [2, 2], as `most`; lengths: int64 [2], of orders; depths: int64 [2], how many of them are free;
    sizes: int64 [2], shared vertices, members.
    """

    members: np.ndarray
    place: np.ndarray
    orders: np.ndarray
    weight: np.ndarray
    loads: np.ndarray
    held: np.ndarray
    lengths: np.ndarray
    depths: np.ndarray
    sizes: np.ndarray


def open_region(pair: Pair, num_vertices: int) -> tuple[Net, Region]:
    """The first region, FREE of each part's edges, and the net of its vertices."""
    halves = 2 * len(pair.ends)
    indptr = np.zeros(num_vertices + 1, dtype=np.int32)
    net = Net(indptr, *np.empty((2, halves), dtype=np.int32), *np.zeros((3, num_vertices), dtype=np.bool_))
    region = Region(
        *np.empty((2, num_vertices), dtype=np.int32),
        np.empty((2, num_vertices), dtype=np.int32),
        np.zeros((2, num_vertices + 2, 2)),
        np.zeros((2, 2)),
        np.zeros((2, 2), dtype=np.int64),
        *np.zeros((3, 2), dtype=np.int64),
    )
    _link(pair.ends, net)
    _order(pair, net, region)
    return net, region


@kernel(_nrt=False)
def _link(ends, net):
    """Edges from both ends, a self-loop once."""
    indptr = net.indptr
    last = indptr.shape[0] - 1
    for e in range(ends.shape[0]):
        indptr[ends[e, 0]] += 1
        if ends[e, 0] != ends[e, 1]:
            indptr[ends[e, 1]] += 1
    for v in range(last):
        indptr[v + 1] += indptr[v]
    indptr[last] = indptr[last - 1]
    for e in range(ends.shape[0] - 1, -1, -1):
        for i in range(1 if ends[e, 0] == ends[e, 1] else 2):
            v = ends[e, i]
            indptr[v] -= 1
            net.neighbours[indptr[v]], net.edges[indptr[v]] = ends[e, 1 - i], e


@kernel(_nrt=False)
def _order(pair, net, region):
    """Shared vertices, both orders, loads; then open the first region: FREE of each part's edges."""
    num_vertices = region.place.shape[0]
    place, members, loads = region.place, region.members, region.loads
    place[:] = 0
    for e in range(pair.ends.shape[0]):
        side = pair.sides[e]
        place[pair.ends[e, 0]] |= 1 << side
        place[pair.ends[e, 1]] |= 1 << side
        loads[side, 0] += pair.weights[e, 0]
        loads[side, 1] += pair.weights[e, 1]
    shared = 0
    for v in range(num_vertices):
        for side in range(2):
            region.held[side, 0] += (place[v] >> side) & 1
            region.held[side, 1] += pair.alone[v] and place[v] == 1 << side
        if place[v] == 3:
            members[shared] = v
            shared += 1
            place[v] = 0
        else:
            place[v] = num_vertices + 1
    region.sizes[0] = shared
    for side in range(2):
        order, found = region.orders[side], 0
        for head in range(-shared, num_vertices):
            if head >= found:
                break
            v = order[head] if head >= 0 else members[head + shared]
            for j in range(net.indptr[v], net.indptr[v + 1]):
                w = net.neighbours[j]
                if pair.sides[net.edges[j]] == side and place[w] > num_vertices:
                    order[found] = w
                    found += 1
                    place[w] = found
        region.lengths[side] = found
    for e in range(pair.ends.shape[0]):
        depth = max(place[pair.ends[e, 0]], place[pair.ends[e, 1]])
        region.weight[pair.sides[e], depth, 0] += pair.weights[e, 0]
        region.weight[pair.sides[e], depth, 1] += pair.weights[e, 1]
    for side in range(2):
        for depth in range(num_vertices):
            region.weight[side, depth + 1, 0] += region.weight[side, depth, 0]
            region.weight[side, depth + 1, 1] += region.weight[side, depth, 1]
        depth = 0
        while depth < region.lengths[side] and region.weight[side, depth, 0] < FREE * loads[side, 0]:
            net.inside[region.orders[side, depth]] = True
            depth += 1
        region.depths[side] = depth
    for i in range(shared):
        net.inside[members[i]] = True
    for e in range(pair.ends.shape[0]):
        u, v = pair.ends[e, 0], pair.ends[e, 1]
        if not (net.inside[u] and net.inside[v]):
            if pair.sides[e]:
                net.to_sink[u] = net.to_sink[v] = True
            else:
                net.from_source[u] = net.from_source[v] = True


@inline(_nrt=False)
def list_members(region):
    found = region.sizes[0]
    for side in range(2):
        for i in range(region.depths[side]):
            region.members[found] = region.orders[side, i]
            found += 1
    region.sizes[1] = found


@kernel(_nrt=False)
def shrink(side, region, net, flow):
    """Fix the edges of this part's farthest free vertices; paths through these end, or begin, behind them."""
    fewer = np.int64(SHRINK * region.depths[side])
    for i in range(fewer, region.depths[side]):
        v = region.orders[side, i]
        net.inside[v] = False
        for j in range(net.indptr[v], net.indptr[v + 1]):
            if side:
                net.to_sink[net.neighbours[j]] = True
            else:
                net.from_source[net.neighbours[j]] = True
        if not flow.full[v]:
            continue
        if side:
            if flow.before[v] >= 0:
                flow.after[flow.before[v]] = -1
        elif flow.after[v] >= 0:
            flow.before[flow.after[v]] = -1
        while v >= 0:
            flow.full[v] = False
            v = flow.after[v] if side else flow.before[v]
    region.depths[side] = fewer
