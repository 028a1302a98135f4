"""Rows in an order that keeps caches warm: vertices renumbered hubs first, then by cluster; rows sorted by lower end.

What is looked up at a row's lower-degree end is then still there from the row before, and the other end is near by or
a hub. The steps of a cut after clustering are bound by these look-ups.

Shapes: N vertices, M rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.jit import kernel
from distgnn.kernels.threads import even_chunks, own_ranges, run
from distgnn.kernels.tiles import Tile
from distgnn.kernels.vectors import prefetch

HUB = 16  # times the mean degree
AHEAD = 16  # rows between asking for a place and writing to it
PAIR = Tile(lanes=2, offsets=(0,), heads=(0,))


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
    known = np.empty((len(degrees), 2), dtype=edge_list.src.dtype)  # degree and number of a vertex side by side
    known[:, 0] = degrees
    known[vertices, 1] = np.arange(len(degrees))
    low, high = np.empty_like(edge_list.src), np.empty_like(edge_list.dst)
    run(_renumber, even_chunks(len(low), 8), edge_list.src, edge_list.dst, known, low, high)
    starts = np.zeros(len(degrees) + 1, dtype=np.int64)
    _count(low, starts)
    np.cumsum(starts, out=starts)
    src = np.repeat(np.arange(len(degrees), dtype=low.dtype), np.diff(starts))
    pairs = np.empty((len(low), 2), dtype=np.int32 if len(low) < 2**31 and low.dtype == np.int32 else np.int64)
    run(_deal_out, own_ranges(starts), low, high, starts[:-1].copy(), pairs)
    dst, order = pairs[:, 0].astype(low.dtype), pairs[:, 1].copy()
    return Rows(src, dst, edge_list.num_nodes, edge_list.two_way, edge_list.num_arcs), order, vertices


@kernel
def _renumber(start, stop, src, dst, known, low, high):
    for e in range(start, stop):
        u, v = src[e], dst[e]
        a, b = known[u, 1], known[v, 1]
        swap = (known[v, 0] < known[u, 0]) | ((known[v, 0] == known[u, 0]) & (v < u))
        difference = (b - a) * swap  # no branch: it would be wrong every other time
        low[e] = a + difference
        high[e] = b - difference


@kernel
def _count(low, starts):
    for e in range(low.shape[0]):
        starts[low[e] + 1] += 1


@kernel
def _deal_out(begin, end, low, high, next_place, pairs):
    """pairs = (high, e) of each row e, sorted by its lower end, stable, for the lower ends from begin to end."""
    last = low.shape[0] - 1
    for e in range(low.shape[0]):
        soon = low[min(e + AHEAD, last)]
        if begin <= soon < end:
            prefetch(PAIR, pairs, 2 * next_place[soon])
        u = low[e]
        if not begin <= u < end:
            continue
        place = next_place[u]
        pairs[place, 0] = high[e]
        pairs[place, 1] = e
        next_place[u] = place + 1
