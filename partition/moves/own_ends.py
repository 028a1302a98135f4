"""The ends of edges that lie in one thread's range of vertices: what a thread needs to write at its own vertices only.

Every thread reads all edges and writes what belongs to its vertices, so no write needs an atomic and the result does
not depend on the number of threads.

Shapes: M edges.
Source: ours.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import inline
from distgnn.kernels.runtime.tiles import Tile

BLOCK_EDGES = 1 << 11  # edges whose own ends a thread lists before it works on them: the list stays in the L1 cache
WORD = Tile(lanes=1, offsets=(0,), heads=(0,))  # prefetch(WORD, array, i) asks for the cache line of array[i]


# The plain loop:
#
#     for e in range(first, last):
#         for vertex, other in ((src[e], dst[e]), (dst[e], src[e])):
#             if low <= vertex < high:                      # a self-loop: once, where edges are listed
#                 own[found] = vertex, e if list_edges else other
#                 found += 1
#
# Whether an end is the thread's own is a coin toss that the branch predictor loses. So both ends are always written to
# the next free place, and the place moves on by the truth of the test (0 or 1). Unsigned subtraction makes one test of
# two: a vertex below `low` wraps around to a huge number.
@inline(_nrt=False)
def own_ends(low, high, first, last, src, dst, own, list_edges):
    """List the ends of edges first to last that are vertices from low to high; returns how many.

    own[i] = (vertex, edge), a self-loop once, if `list_edges`; else (vertex, the other end), a self-loop twice.
    """
    # `own` has two places for each edge of a block: what is written in vain lies within, and is
    # written over or left behind `found`.
    width, found = uint64(high - low), 0
    for e in range(first, last):
        u, v = np.int64(src[e]), np.int64(dst[e])
        own[found, 0], own[found, 1] = u, e if list_edges else v
        found += uint64(u - low) < width
        own[found, 0], own[found, 1] = v, e if list_edges else u
        found += (uint64(v - low) < width) & ((u != v) | (not list_edges))
    return found
