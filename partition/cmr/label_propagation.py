"""Clusters: label propagation with a cap on a cluster's volume.

A vertex takes the label with most votes among its neighbours; a neighbour votes with 1 / sqrt(degree), so hubs do not
decide alone. A block of vertices is evaluated in parallel against frozen labels, then the moves are made in order under
the cap: the result does not depend on the number of threads.

Shapes: N vertices, M edges.
Source: ours; label propagation: Raghavan et al. 2007, section III.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import BLOCK_EDGES, WORD, Edges, own_ends

SWEEPS = 2
BLOCKS = 128  # block b holds the vertices b, b + 128, …: neighbours in storage order see each other's last move
AHEAD = 16  # neighbours between asking for a label and reading it
SMALL = 10_000  # vertices below which threads do not pay


def adjacency(edge_list: Edges, degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of every edge as CSR: indptr int64 [N + 1], neighbours [2 M]; degrees: [N], see `endpoint_degrees`."""
    src, dst = edge_list.src, edge_list.dst
    indptr = np.zeros(edge_list.num_nodes + 1, dtype=np.int64)
    np.cumsum(degrees, out=indptr[1:])
    neighbours = np.empty(2 * len(src), dtype=src.dtype)
    threads = get_num_threads() if edge_list.num_nodes > SMALL else 1
    # One range of vertices for each thread, with about equal numbers of edge ends.
    bounds = np.searchsorted(indptr, indptr[-1] * np.arange(threads + 1) // threads)
    bounds[-1] = edge_list.num_nodes
    run(_fill, range(threads + 1), bounds, src, dst, indptr[:-1].copy(), neighbours)
    return indptr, neighbours


@kernel
def _fill(start, stop, bounds, src, dst, places, neighbours):
    """Neighbours of the vertices of one piece, from all edges; places: int64 [N], the next place of each vertex."""
    own = np.empty((2 * BLOCK_EDGES, 2), dtype=np.int64)
    for first in range(0, src.shape[0], BLOCK_EDGES):
        last = min(first + BLOCK_EDGES, src.shape[0])
        _fill_own(own, own_ends(bounds[start], bounds[stop], first, last, src, dst, own, False), places, neighbours)


@inline(counted=False)
def _fill_own(own, size, places, neighbours):
    last = size - 1
    for i in range(size):
        # Plain: neighbours[places[v]] = neighbour; places[v] += 1. Where to write is known only once places[v] has
        # come: so the place is asked for first, and what it points to half as far ahead.
        prefetch(WORD, places, own[min(i + 2 * AHEAD, last), 0])
        prefetch(WORD, neighbours, places[own[min(i + AHEAD, last), 0]])
        v = own[i, 0]
        neighbours[places[v]] = own[i, 1]
        places[v] += 1


def cluster_vertices(indptr: np.ndarray, neighbours: np.ndarray, cap: float, sweeps: int = SWEEPS) -> np.ndarray:
    """Cluster label [N] int32 of each vertex (a vertex id); no cluster's degrees sum to more than `cap`."""
    num_nodes = len(indptr) - 1
    degrees = np.diff(indptr)
    # Label (int32) and voting weight (float32) of a vertex side by side: they are always read together.
    voters = np.empty((num_nodes, 2), dtype=np.int32)
    labels, weights = voters[:, 0], voters.view(np.float32)
    labels[:] = np.arange(num_nodes)
    weights[:, 1] = 1.0 / np.sqrt(np.maximum(degrees, 1))
    volumes = degrees.copy()
    wanted = np.empty(num_nodes, dtype=np.int32)
    threads = get_num_threads() if num_nodes > SMALL else 1
    votes = np.zeros((threads, num_nodes), dtype=np.float32)
    around = np.empty((threads, int(degrees.max(initial=0))), dtype=np.int32)
    blocks = min(BLOCKS, max(num_nodes, 1))
    for block in [block for _ in range(sweeps) for block in range(blocks)]:
        size = len(range(block, num_nodes, blocks))
        bounds = np.arange(threads + 1) * size // threads
        args = (bounds, block, blocks, indptr, neighbours, volumes, float(cap), votes, around, voters, weights, wanted)
        run(_vote, range(threads + 1), *args)
        _move(block, blocks, indptr, float(cap), wanted, labels, volumes)
    return labels.copy()


# Plain, for each vertex v of the block:
#
#     tally = sums of the voting weights of the neighbours of v (but itself), by their label
#     wanted[v] = the label with the largest sum that has room for v; its own on a tie
#
# Labels of neighbours are listed before they are counted, so that the tally of a label can be asked for before it is
# added to; labels themselves are asked for AHEAD neighbours before they are read.
@kernel
def _vote(start, stop, bounds, block, blocks, indptr, neighbours, volumes, cap, votes, around, voters, weights, wanted):
    """wanted[v] for one thread's piece of the block; votes, around: scratch of each thread."""
    tally, labels = votes[start], around[start]
    for member in range(bounds[start], bounds[stop]):
        v = block + member * blocks
        begin, degree = indptr[v], indptr[v + 1] - indptr[v]
        for i in range(degree):
            prefetch(WORD, voters, 2 * np.int64(neighbours[begin + min(i + AHEAD, degree - 1)]))
            labels[i] = voters[neighbours[begin + i], 0]
            prefetch(WORD, tally, labels[i])
        wanted[v] = heaviest_label(v, begin, degree, degree, neighbours, labels, voters, weights, volumes, cap, tally)


@inline(counted=False)
def heaviest_label(v, begin, count, size, neighbours, labels, voters, weights, volumes, cap, tally):
    """The label with most votes that has room for v, of volume `size`; v's own on a tie.

    Args: neighbours[begin : begin + count]: who votes; labels[:count]: for what; tally: float32 [N], zeros before and
        after.
    """
    for i in range(count):
        u = neighbours[begin + i]
        tally[labels[i]] += weights[u, 1] if u != v else np.float32(0.0)
    best = voters[v, 0]
    most = tally[best]
    for i in range(count):
        label = labels[i]
        if tally[label] > most and volumes[label] + size <= cap:
            best, most = label, tally[label]
    # Only what was used goes back to 0: the tally has a float for every vertex, too many to clear for each.
    for i in range(count):
        tally[labels[i]] = 0.0
    return best


@kernel
def _move(block, blocks, indptr, cap, wanted, labels, volumes):
    """Move the vertices of a block to the labels they want, in order, while there is room."""
    for v in range(block, labels.shape[0], blocks):
        degree = indptr[v + 1] - indptr[v]
        # Asked again: moves before this one may have filled the cluster since the vote.
        if wanted[v] != labels[v] and volumes[wanted[v]] + degree <= cap:
            volumes[labels[v]] -= degree
            volumes[wanted[v]] += degree
            labels[v] = wanted[v]
