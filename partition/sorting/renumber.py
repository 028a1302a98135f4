"""Edges in an order that keeps caches warm: vertices renumbered hubs first, then by cluster; edges by lower end.

What is looked up at an edge's lower-degree end is then still there from the edge before, the other end is near by or
a hub. The steps of a cut after clustering are bound by these look-ups.

Shapes: N vertices, M edges.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import EdgeArrays, Edges
from distgnn.partition.sorting.bucket_sort import new_edges, sort_buffer, sort_in_memory

HUB = 16  # times the mean degree
AHEAD = 32  # edges between asking for what is known of their ends and reading it
PAIR = Tile(lanes=1, offsets=(0,), heads=(0,))


def ordered_edges(
    edge_list: Edges, degrees: np.ndarray, labels: np.ndarray
) -> tuple[EdgeArrays, np.ndarray, np.ndarray]:
    """Renumber and sort.

    Args: degrees: [N]; labels: [N], the cluster of each vertex.
    Returns: edges; the edge [M] of the edge list behind each; the vertex [N] behind each new number.
    """
    hub = degrees > HUB * max(float(degrees.mean()), 1.0) if len(degrees) else np.zeros(0, dtype=bool)
    # Negative keys come before all labels: hubs by falling degree, in few cache lines because they are looked up all
    # the time; then the others by cluster, ties by id.
    keys = np.where(hub, -degrees.astype(np.int64), labels)
    vertices = np.argsort(keys, kind="stable")
    known = np.empty((len(degrees), 2), dtype=np.int32)  # degree and number of a vertex side by side
    known[:, 0] = degrees
    known[vertices, 1] = np.arange(len(degrees))
    src, dst = edge_list.src, edge_list.dst

    def fill(begin: int, end: int, low: np.ndarray, high: np.ndarray, tag: np.ndarray) -> None:
        _renumber(begin, end, src, dst, known, low, high, tag)

    low, high, tag = sort_in_memory(fill, new_edges(len(src)), len(degrees), sort_buffer(len(src)))
    # `low` is the source of what is returned, whatever the arc's direction was, so the bit beside the edge is not used:
    # `_renumber` leaves it 0.
    tag >>= 1
    order = tag.view(np.int32 if tag.itemsize == 4 else np.int64)
    return EdgeArrays(low, high, edge_list.num_nodes, edge_list.two_way, edge_list.num_arcs), order, vertices


@kernel(_nrt=False)
def _renumber(begin, end, src, dst, known, low, high, tag):
    """Edges begin to end under new numbers, the end of lower degree first (ties: lower id).

    Plain: `low, high = (b, a) if swap else (a, b)` with a, b the new numbers of src and dst. A branch would be guessed
    wrong every other time, so the difference of the two is added or not.
    """
    last = src.shape[0] - 1
    for e in range(begin, end):
        prefetch(PAIR, known, 2 * np.int64(src[min(e + AHEAD, last)]))
        prefetch(PAIR, known, 2 * np.int64(dst[min(e + AHEAD, last)]))
        u, v = src[e], dst[e]
        a, b = known[u, 1], known[v, 1]
        # `|` and `&`, because `or` and `and` would be branches.
        swap = (known[v, 0] < known[u, 0]) | ((known[v, 0] == known[u, 0]) & (v < u))
        difference = (b - a) * swap
        low[e - begin] = a + difference
        high[e - begin] = b - difference
        tag[e - begin] = 2 * e
