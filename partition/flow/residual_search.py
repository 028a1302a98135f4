"""What can be reached along residual steps, and the edges that are thereby on one side: all minimum separators.

The nodes that are reached forward from the sources bound the minimum separator nearest to them; those that reach a sink
the one nearest to the sinks. Starting from one more node gives the next separator in between (Picard and Queyranne
1980): `take_back` undoes that where it claims too much.

Shapes: N vertices, E edges; nodes as in max_flow.py.
Source: ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.partition.flow.max_flow import in_node, is_out, out_node, vertex_of

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
    """A `Search` from which nothing has been spread."""
    reached, claimed = np.zeros(2 * num_vertices, dtype=np.bool_), np.zeros(num_edges, dtype=np.bool_)
    queue, claims = np.empty(2 * num_vertices, dtype=np.int32), np.empty(num_edges, dtype=np.int32)
    return Search(reached, queue, claimed, claims, np.zeros(2, dtype=np.int64), np.zeros(2))


@inline(_nrt=False)
def forget(search):
    """Begin again."""
    search.reached[:] = False
    search.claimed[:] = False
    search.lengths[:] = 0
    search.weight[:] = 0


@inline(_nrt=False)
def add_node(node, search):
    """Spread from this node too, next time."""
    if not search.reached[node]:
        search.reached[node] = True
        search.queue[search.lengths[QUEUE]] = node
        search.lengths[QUEUE] += 1


@inline(_nrt=False)
def claim(e, weights, search):
    """Count edge e, which is not claimed yet, to this side."""
    search.claimed[e] = True
    search.claims[search.lengths[CLAIMS]] = e
    search.lengths[CLAIMS] += 1
    search.weight[0] += weights[e, 0]
    search.weight[1] += weights[e, 1]


@kernel(_nrt=False)
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


@kernel(_nrt=False)
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
