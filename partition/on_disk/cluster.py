"""Clusters without an adjacency: label propagation along sorted edges, which are half of an adjacency.

Blocks of vertices vote in parallel against frozen labels, then move in order; who has a neighbour before it in the
block votes in its turn. So labels are as if one vertex voted after the other, but where a cluster had no room when the
block began and has some later. The number of threads makes no difference.

Shapes: N vertices, M edges.
Source: ours; label propagation: Raghavan et al. 2007.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.cmr.label_propagation import heaviest_label
from distgnn.partition.core.edges import WORD
from distgnn.partition.core.sorted_edges import SortedEdges, Step

CLUSTER_PASSES = 3
# A block is a fraction of the edges before it: among vertices of high degree, many are each other's neighbours.
BLOCKS, SMALLEST_BLOCK, LARGEST_BLOCK = 32, 1 << 15, 10_000_000
MOST_THREADS = 4  # each has a vote of 4 bytes for every label
NOWHERE = np.iinfo(np.int32).min  # what a vertex wants that is not in the block
AHEAD = 32  # edges between asking for a label and reading it


def cluster_by_edges(edges: SortedEdges, degrees: np.ndarray, cap: float, step: Step) -> tuple[np.ndarray, np.ndarray]:
    """Cluster label int32 [N] of each vertex (a vertex) and the clusters' volumes int64 [N].

    Label propagation over half of each edge: a vertex looks at its neighbours of higher degree, which weigh
    1 / sqrt(degree), and joins the label with most, if there is room below `cap`. Low-degree vertices join hubs, never
    the reverse: few neighbours of a vertex that is not a hub have lower degree, so little is missed. Vertices look in
    order of falling degree.

    Args: edges: of `sort_edges`; degrees: [N], descending; cap: most edge ends of a cluster of several vertices.
    Notes: memory 20 bytes for each vertex beside the results, and 4 for each further thread.
    """
    size = len(edges.low)
    # Label (int32) and voting weight (float32) of a vertex side by side: they are always read together.
    voters = np.empty((len(degrees), 2), dtype=np.int32)
    labels = voters[:, 0]
    labels[:] = np.arange(len(degrees))
    weights = voters.view(np.float32)
    weights[:, 1] = 1 / np.sqrt(np.maximum(degrees, 1))
    volumes = degrees.astype(np.int64)
    wanted = np.full(len(degrees), NOWHERE, dtype=np.int32)
    threads = min(get_num_threads(), MOST_THREADS)
    votes = np.zeros((threads, len(degrees)), dtype=np.float32)
    around = np.empty((threads, int(degrees.max(initial=0))), dtype=np.int32)
    ballot = Ballot(edges.low, edges.high, degrees, float(cap), voters, weights, volumes, wanted)
    for number in range(CLUSTER_PASSES):
        done = 0
        while done < size:
            bounds = _block(edges.low, done, threads)
            run(_vote, range(len(bounds)), bounds, ballot, votes, around)
            _move(done, int(bounds[-1]), ballot, votes[0], around[0])
            done = int(bounds[-1])
            step(number * size + done, CLUSTER_PASSES * size)
    return labels.copy(), volumes


class Ballot(NamedTuple):
    """What votes and moves look at. low, high: [M]; degrees: [N]; cap, see `cluster_by_edges`; volumes: int64 [N];
    voters: int32 [N, 2], label and weight, weights: the same as float32; wanted: int32 [N], the label that a vertex
    wants, or, if it votes in its turn, -1 less the place of its first edge in the block, or `NOWHERE`."""

    low: np.ndarray
    high: np.ndarray
    degrees: np.ndarray
    cap: float
    voters: np.ndarray
    weights: np.ndarray
    volumes: np.ndarray
    wanted: np.ndarray


def _block(low: np.ndarray, begin: int, threads: int) -> np.ndarray:
    """Bounds of the threads' shares of the block of edges that begins here: int64, each where a vertex begins."""
    wanted = min(max(begin // BLOCKS, SMALLEST_BLOCK), LARGEST_BLOCK)
    end = int(np.searchsorted(low, low[min(begin + wanted, len(low)) - 1], side="right"))
    inner = np.searchsorted(low, low[[begin + (end - begin) * i // threads for i in range(1, threads)]])
    return np.array([begin, *inner, end])


# Plain, for each vertex v of the share:
#
#     wanted[v] = in turn if a neighbour before it is in the same block, else the label with most votes
@kernel(counted=False)
def _vote(share, _, bounds, ballot, votes, around):
    """wanted[v] of the vertices in one share; votes, around: scratch of each."""
    begin, end, low = bounds[share], bounds[share + 1], ballot.low
    first = low[bounds[0]]
    while begin < end:
        v = low[begin]
        last, highest = _look_around(begin, end, ballot, votes[share], around[share])
        ballot.wanted[v] = bounds[0] - 1 - begin
        if highest < first:
            ballot.wanted[v] = _label_of(v, begin, last, ballot, votes[share], around[share])
        begin = last


# Labels of neighbours are listed before they are counted, as in label_propagation.py: with that, and with labels asked
# for ahead, clusters took 1.8 s instead of 3.3 (52 M edges, docs/internals/cmr.md).
@inline(counted=False)
def _look_around(begin, end, ballot, votes, around):
    """around = labels of neighbours of the vertex whose edges begin here; returns their end, and the last before it."""
    low, high, voters = ballot.low, ballot.high, ballot.voters
    v, last, highest = low[begin], begin, 0
    while last < end and low[last] == v:
        prefetch(WORD, voters, 2 * np.int64(high[min(last + AHEAD, end - 1)]))
        around[last - begin] = voters[high[last], 0]
        prefetch(WORD, votes, around[last - begin])
        highest = max(highest, high[last] if high[last] < v else 0)
        last += 1
    return last, highest


@inline(counted=False)
def _label_of(v, begin, last, ballot, votes, around):
    """The label with most votes that has room for v, its own on a tie; v's edges are those from begin to last."""
    _, high, degrees, cap, voters, weights, volumes, _ = ballot
    return heaviest_label(v, begin, last - begin, degrees[v], high, around, voters, weights, volumes, cap, votes)


@kernel(counted=False)
def _move(begin, end, ballot, votes, around):
    """Move the vertices of edges from begin to end, in order, to the labels that they want; then none wants one.

    Who was to vote in turn, or finds no room any more where it wants to go, votes now.
    """
    low, degrees, voters, volumes, wanted = ballot.low, ballot.degrees, ballot.voters, ballot.volumes, ballot.wanted
    for v in range(low[begin], low[end - 1] + 1):
        label, own = np.int64(wanted[v]), voters[v, 0]
        wanted[v] = NOWHERE
        if label == NOWHERE or label == own:
            continue
        if label < 0 or volumes[label] + degrees[v] > ballot.cap:
            first = begin - 1 - label if label < 0 else begin + np.searchsorted(low[begin:end], v)
            last, _ = _look_around(first, end, ballot, votes, around)
            label = _label_of(v, first, last, ballot, votes, around)
        if label != own:
            volumes[own] -= degrees[v]
            volumes[label] += degrees[v]
            voters[v, 0] = label
