"""Rows in an order that keeps caches warm: vertices renumbered hubs first, then by cluster; rows sorted by lower end.

What is looked up at a row's lower-degree end is then still there from the row before, and the other end is near by or
a hub. The steps of a cut after clustering are bound by these look-ups.

Shapes: N vertices, M rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.jit import kernel
from distgnn.kernels.threads import even_chunks, run
from distgnn.partition.book import group

HUB = 16  # times the mean degree


class Rows(NamedTuple):
    """The rows of an edge list under new numbers; src is the end of lower degree. Stands in for the list."""

    src: np.ndarray
    dst: np.ndarray
    num_nodes: int
    two_way: bool
    num_arcs: int


def ordered_rows(edge_list, degrees: np.ndarray, labels: np.ndarray) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Renumber and sort.

    Args: degrees: [N]; labels: [N], the cluster of each vertex.
    Returns: rows; the row [M] of the edge list behind each; the vertex [N] behind each new number.
    """
    hub = degrees > HUB * max(float(degrees.mean()), 1.0) if len(degrees) else np.zeros(0, dtype=bool)
    keys = np.where(hub, -degrees.astype(np.int64), labels)
    vertices = np.argsort(keys, kind="stable")
    numbers = np.empty(len(degrees), dtype=edge_list.src.dtype)
    numbers[vertices] = np.arange(len(degrees), dtype=numbers.dtype)
    low, high = np.empty_like(edge_list.src), np.empty_like(edge_list.dst)
    size = len(low)
    run(_renumber, even_chunks(size, 8), edge_list.src, edge_list.dst, degrees, numbers, low, high)
    order, _ = group(low, len(degrees))
    src, dst = np.empty_like(low), np.empty_like(high)
    run(_take, even_chunks(size, 8), order, low, high, src, dst)
    return Rows(src, dst, edge_list.num_nodes, edge_list.two_way, edge_list.num_arcs), order, vertices


@kernel
def _renumber(start, stop, src, dst, degrees, numbers, low, high):
    for e in range(start, stop):
        u, v = src[e], dst[e]
        if degrees[v] < degrees[u] or (degrees[v] == degrees[u] and v < u):
            u, v = v, u
        low[e] = numbers[u]
        high[e] = numbers[v]


@kernel
def _take(start, stop, order, low, high, src, dst):
    for i in range(start, stop):
        src[i] = low[order[i]]
        dst[i] = high[order[i]]
