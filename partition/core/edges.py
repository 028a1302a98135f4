"""What every cutting method reads of a graph: its edges as arrays, their degrees, edges by a key, and a thread's own.

Shapes: N vertices, M edges of the edge list, K keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64

from distgnn.datasets.edge_list import EdgeList
from distgnn.kernels.graph.csr import stable_order
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, get_num_threads, run
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch

SMALL = 5 * 10**6  # edges up to which a cut is refined in several rounds
AHEAD = 32  # edges between asking for a count and raising it
BLOCK_EDGES = 1 << 11  # edges whose own ends a thread lists before it works on them: the list stays in the L1 cache
WORD = Tile(lanes=1, offsets=(0,), heads=(0,))  # prefetch(WORD, array, i) asks for the cache line of array[i]


class EdgeArrays(NamedTuple):
    """Some edges, perhaps under other numbers of the vertices and in another order, where an `EdgeList` is expected."""

    src: np.ndarray
    dst: np.ndarray
    num_nodes: int
    two_way: bool
    num_arcs: int  # a two-way edge counts twice unless it is a self-loop
    node_kinds: np.ndarray | None = None  # as of an EdgeList
    edge_kinds: np.ndarray | None = None


Edges = EdgeList | EdgeArrays


def endpoint_degrees(edge_list: Edges) -> np.ndarray:
    """[N] edges at each vertex, a self-loop counted twice: the degree that cutting methods compare.

    Notes: memory 4 bytes for each vertex and thread.
    """
    edges = len(edge_list.src)
    threads = get_num_threads() if edges > FEW_EDGES else 1
    counts = np.zeros((threads, edge_list.num_nodes), dtype=np.int32 if edges < 2**30 else np.int64)
    run(_count_ends, range(threads + 1), edge_list.src, edge_list.dst, counts)
    return counts[0] if threads == 1 else counts.sum(axis=0, dtype=counts.dtype)


@kernel(counted=False)
def _count_ends(share, _, src, dst, counts):
    """counts[share] += the ends of one thread's share of the edges.

    Without the prefetches: counts[share, src[e]] += 1; counts[share, dst[e]] += 1. Ends are in no order, so each count
    is a cache miss; asking for it `AHEAD` edges earlier lets the misses overlap.
    """
    edges, shares = src.shape[0], counts.shape[0]
    for e in range(edges * share // shares, edges * (share + 1) // shares):
        prefetch(WORD, counts, share * counts.shape[1] + src[min(e + AHEAD, edges - 1)])
        prefetch(WORD, counts, share * counts.shape[1] + dst[min(e + AHEAD, edges - 1)])
        counts[share, src[e]] += 1
        counts[share, dst[e]] += 1


def group(keys: np.ndarray, num_keys: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of `keys` [M] sorted by key, stable, and where each key begins, int64 [K + 1].

    Returns: the positions as int32 if they fit, because such arrays are the largest that a cut has.
    """
    # Threads count keys of their own: at most one byte more for each edge.
    threads = max(1, len(keys) // (8 * num_keys)) if len(keys) > FEW_EDGES else 1
    starts, order = stable_order(keys, num_keys, np.int32 if len(keys) < 2**31 else np.int64, most_blocks=threads)
    return order, starts


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
@inline(counted=False)
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
