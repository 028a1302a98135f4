"""New numbers for vertices, by cluster or by degree, so that what is used together lies together.

`ordered_edges` numbers hubs first, then by cluster, and sorts edges by lower end: what is looked up there is still in
the cache from the edge before, and the other end is near by or a hub. Steps after clustering are bound by these
look-ups.

Shapes: N vertices, K clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import AHEAD, WORD, EdgeArrays, Edges, group
from distgnn.partition.sorting.bucket_sort import new_edges, sort_found

HUB = 16  # times the mean degree


class Numbering(NamedTuple):
    """number: int32 [N], new number of each vertex, by cluster (largest first), then id; begins: int64 [K + 1]."""

    number: np.ndarray
    begins: np.ndarray


def number_by_cluster(labels: np.ndarray, volumes: np.ndarray) -> Numbering:
    """Number vertices by cluster, clusters by volume (largest first; ties: lower label)."""
    present = np.flatnonzero(np.bincount(labels, minlength=len(labels)))
    present = present[np.argsort(-volumes[present], kind="stable")]
    place = np.empty(len(labels), dtype=np.int32)  # of each cluster
    place[present] = np.arange(len(present))
    # Every cluster is a range of vertices, and of the edges sorted by their lower end.
    order, begins = group(place[labels], len(present))
    return Numbering(_inverse(order), begins)


def number_by_degree(degrees: np.ndarray) -> np.ndarray:
    """Number int32 [N] of each vertex, largest degree first; ties: lower id."""
    largest = int(degrees.max(initial=0))
    return _inverse(group(largest - degrees, largest + 1)[0])


def _inverse(order: np.ndarray) -> np.ndarray:
    """The place int32 [N] of each vertex in an order."""
    places = np.empty(len(order), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def ordered_edges(
    edge_list: Edges, degrees: np.ndarray, labels: np.ndarray
) -> tuple[EdgeArrays, np.ndarray, np.ndarray]:
    """Edges renumbered and sorted; the edge [M] behind each; the vertex [N] behind each new number."""
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

    low, high, tag = sort_found(fill, new_edges(len(src)), len(degrees))
    # `low` is the source of what is returned, whatever the arc's direction was, so the bit beside the edge is not used:
    # `_renumber` leaves it 0.
    tag >>= 1
    order = tag.view(np.int32 if tag.itemsize == 4 else np.int64)
    return EdgeArrays(low, high, edge_list.num_nodes, edge_list.two_way, edge_list.num_arcs), order, vertices


@kernel(counted=False)
def _renumber(begin, end, src, dst, known, low, high, tag):
    """Edges begin to end under new numbers, the end of lower degree first (ties: lower id).

    Plain: `low, high = (b, a) if swap else (a, b)` with a, b the new numbers of src and dst. A branch would be guessed
    wrong every other time, so the difference of the two is added or not.
    """
    last = src.shape[0] - 1
    for e in range(begin, end):
        prefetch(WORD, known, 2 * np.int64(src[min(e + AHEAD, last)]))
        prefetch(WORD, known, 2 * np.int64(dst[min(e + AHEAD, last)]))
        u, v = src[e], dst[e]
        a, b = known[u, 1], known[v, 1]
        # `|` and `&`, because `or` and `and` would be branches.
        swap = (known[v, 0] < known[u, 0]) | ((known[v, 0] == known[u, 0]) & (v < u))
        difference = (b - a) * swap
        low[e - begin] = a + difference
        high[e - begin] = b - difference
        tag[e - begin] = 2 * e
