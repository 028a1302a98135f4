"""Clusters: label propagation with a cap on a cluster's volume.

A vertex takes the label whose bearers among its neighbours weigh most; a neighbour weighs 1 / sqrt(degree), so hubs
do not rule. A block of vertices is evaluated in parallel against frozen labels, then the moves are made in order under
the cap: the result does not depend on the number of threads.

Shapes: N vertices, M rows of the edge list.
Source: ours; label propagation: Raghavan et al. 2007.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch

SWEEPS = 2
BLOCKS = 128  # block b holds the vertices b, b + 128, …: neighbours in storage order see each other's last move
BLOCK_ROWS = 1 << 11  # of which a thread first finds its own ends
AHEAD = 16  # neighbours between asking for a label and reading it
MARK = Tile(lanes=1, offsets=(0,), heads=(0,))
SMALL = 10_000  # vertices below which threads do not pay


def adjacency(edge_list, degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of every row as CSR: indptr int64 [N + 1], neighbours [2 M]; degrees: [N], see `endpoint_degrees`."""
    src, dst = edge_list.src, edge_list.dst
    indptr = np.zeros(edge_list.num_nodes + 1, dtype=np.int64)
    np.cumsum(degrees, out=indptr[1:])
    neighbours = np.empty(2 * len(src), dtype=src.dtype)
    threads = get_num_threads() if edge_list.num_nodes > SMALL else 1
    bounds = np.searchsorted(indptr, indptr[-1] * np.arange(threads + 1) // threads)
    bounds[-1] = edge_list.num_nodes
    run(_fill, range(threads + 1), bounds, src, dst, indptr[:-1].copy(), neighbours)
    return indptr, neighbours


@kernel
def _fill(start, stop, bounds, src, dst, places, neighbours):
    """Neighbours of the vertices of one piece, from all rows."""
    own = np.empty((2 * BLOCK_ROWS, 2), dtype=np.int64)
    for first in range(0, src.shape[0], BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, src.shape[0])
        _fill_own(own, _own_pairs(bounds[start], bounds[stop], first, last, src, dst, own), places, neighbours)


@inline(_nrt=False)
def _own_pairs(low, high, first, last, src, dst, own):
    """own[i] = (vertex, neighbour) of the ends of rows first to last that are vertices from low to high; how many.

    Whose vertex an end is cannot be guessed, so there is no branch.
    """
    width, found = uint64(high - low), 0
    for e in range(first, last):
        u, v = np.int64(src[e]), np.int64(dst[e])
        own[found, 0], own[found, 1] = u, v
        found += uint64(u - low) < width
        own[found, 0], own[found, 1] = v, u
        found += uint64(v - low) < width
    return found


@inline(_nrt=False)
def _fill_own(own, size, places, neighbours):
    last = size - 1
    for i in range(size):
        prefetch(MARK, places, own[min(i + 2 * AHEAD, last), 0])
        prefetch(MARK, neighbours, places[own[min(i + AHEAD, last), 0]])
        v = own[i, 0]
        neighbours[places[v]] = own[i, 1]
        places[v] += 1


def cluster_vertices(indptr: np.ndarray, neighbours: np.ndarray, cap: float, sweeps: int = SWEEPS) -> np.ndarray:
    """Cluster label [N] int32 of each vertex (a vertex id); no cluster's degrees sum to more than `cap`.

    Notes: memory 24 bytes for each vertex, and 4 for each vertex and thread.
    """
    num_nodes = len(indptr) - 1
    degrees = np.diff(indptr)
    marks = np.empty((num_nodes, 2), dtype=np.int32)  # label and pull of a vertex side by side
    labels = marks[:, 0]
    labels[:] = np.arange(num_nodes)
    marks.view(np.float32)[:, 1] = 1.0 / np.sqrt(np.maximum(degrees, 1))
    volumes = degrees.copy()
    wanted = np.empty(num_nodes, dtype=np.int32)
    threads = get_num_threads() if num_nodes > SMALL else 1
    votes = np.zeros((threads, num_nodes), dtype=np.float32)
    heard = np.empty((threads, int(degrees.max(initial=0))), dtype=np.int32)
    blocks = min(BLOCKS, max(num_nodes, 1))
    for block in [block for _ in range(sweeps) for block in range(blocks)]:
        members = len(range(block, num_nodes, blocks))
        bounds = np.arange(threads + 1) * members // threads
        voting = (votes, heard, marks, marks.view(np.float32))
        args = (bounds, block, blocks, indptr, neighbours, volumes, float(cap), *voting, wanted)
        run(_vote, range(threads + 1), *args)
        _move(block, blocks, indptr, float(cap), wanted, labels, volumes)
    return labels.copy()


@kernel
def _vote(start, stop, bounds, block, blocks, indptr, neighbours, volumes, cap, votes, heard, marks, pulls, wanted):
    """wanted[v] = the label with most votes that has room for v (its own on a tie), piece by piece."""
    tally, seen = votes[start], heard[start]
    for member in range(bounds[start], bounds[stop]):
        v = block + member * blocks
        begin, degree = indptr[v], indptr[v + 1] - indptr[v]
        for i in range(degree):
            prefetch(MARK, marks, 2 * np.int64(neighbours[begin + min(i + AHEAD, degree - 1)]))
            seen[i] = marks[neighbours[begin + i], 0]
            prefetch(MARK, tally, seen[i])
        for i in range(degree):
            u = neighbours[begin + i]
            tally[seen[i]] += pulls[u, 1] if u != v else np.float32(0.0)
        best = marks[v, 0]
        most = tally[best]
        for i in range(degree):
            label = seen[i]
            if tally[label] > most and volumes[label] + degree <= cap:
                best, most = label, tally[label]
        for i in range(degree):
            tally[seen[i]] = 0.0
        wanted[v] = best


@kernel
def _move(block, blocks, indptr, cap, wanted, labels, volumes):
    for v in range(block, labels.shape[0], blocks):
        degree = indptr[v + 1] - indptr[v]
        if wanted[v] != labels[v] and volumes[wanted[v]] + degree <= cap:
            volumes[labels[v]] -= degree
            volumes[wanted[v]] += degree
            labels[v] = wanted[v]
