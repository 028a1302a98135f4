"""Clusters for `cmr-stream`: label propagation along sorted edges, which are half of an adjacency.

Shapes: N vertices, M edges.
Source: ours; label propagation: Raghavan et al. 2007.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.cmr.label_propagation import heaviest_label
from distgnn.partition.moves.own_ends import WORD
from distgnn.partition.sorting.bucket_sort import SortedEdges, Step

CLUSTER_PASSES = 3
STEP_EDGES = 10_000_000  # between two reports of progress
AHEAD = 32  # edges between asking for a label and reading it


def cluster_rows(rows: SortedEdges, degrees: np.ndarray, cap: float, step: Step) -> tuple[np.ndarray, np.ndarray]:
    """Cluster label int32 [N] of each vertex (a vertex) and the clusters' volumes int64 [N].

    Label propagation over half of each edge: a vertex looks at its neighbours of higher degree, which weigh
    1 / sqrt(degree), and joins the label with most, if there is room below `cap`. Low-degree vertices join hubs, never
    the reverse: few neighbours of a vertex that is not a hub have lower degree, so little is missed. Vertices look in
    order of falling degree.

    Args: rows: edges, of `sort_edges`; degrees: [N], descending; cap: most edge ends of a cluster of several vertices;
        step: told of progress as step(done, total).
    Notes: one thread; memory 16 bytes for each vertex beside the results.
    """
    # Label (int32) and voting weight (float32) of a vertex side by side: they are always read together.
    voters = np.empty((len(degrees), 2), dtype=np.int32)
    labels = voters[:, 0]
    labels[:] = np.arange(len(degrees))
    weights = voters.view(np.float32)
    weights[:, 1] = 1 / np.sqrt(np.maximum(degrees, 1))
    volumes = degrees.astype(np.int64)
    votes = np.zeros(len(degrees), dtype=np.float32)
    around = np.empty(int(degrees.max(initial=0)), dtype=np.int32)
    for number in range(CLUSTER_PASSES):
        done = 0
        while done < len(rows.low):
            done = _join(rows.low, rows.high, done, degrees, float(cap), voters, weights, volumes, votes, around)
            step(number * len(rows.low) + done, CLUSTER_PASSES * len(rows.low))
    return labels.copy(), volumes


# Plain, for each vertex v:
#
#     votes = sums of weights[u] of the neighbours u, by label of u
#     label = the one with most votes that has room for v; move v there if that is not its own
#
# Labels of neighbours are listed before they are counted, as in label_propagation.py: with that, and with labels asked
# for ahead, clusters took 1.8 s instead of 3.3 (52 M edges, docs/internals/cmr.md).
@kernel(_nrt=False)
def _join(
    low: np.ndarray,
    high: np.ndarray,
    begin: int,
    degrees: np.ndarray,
    cap: float,
    voters: np.ndarray,
    weights: np.ndarray,
    volumes: np.ndarray,
    votes: np.ndarray,
    around: np.ndarray,
) -> int:
    """Vertices from edge `begin` on, until `STEP_EDGES` edges are done; returns the next edge. around: scratch."""
    size = low.shape[0]
    until = min(size, begin + STEP_EDGES)
    while begin < until:
        v, count = low[begin], 0
        while begin + count < size and low[begin + count] == v:
            prefetch(WORD, voters, 2 * np.int64(high[min(begin + count + AHEAD, size - 1)]))
            around[count] = voters[high[begin + count], 0]
            prefetch(WORD, votes, around[count])
            count += 1
        own = voters[v, 0]
        best = heaviest_label(v, begin, count, degrees[v], high, around, voters, weights, volumes, cap, votes)
        if best != own:
            volumes[own] -= degrees[v]
            volumes[best] += degrees[v]
            voters[v, 0] = best
        begin += count
    return begin
