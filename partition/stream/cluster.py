"""Clusters for `cmr-stream`: label propagation along sorted rows, which are half of an adjacency.

Shapes: N vertices, M rows.
Source: ours; label propagation: Raghavan et al. 2007.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.sorting.bucket_sort import SortedEdges

CLUSTER_PASSES = 3
AHEAD = 32  # rows between asking for a label and reading it
MARK = Tile(lanes=1, offsets=(0,), heads=(0,))


def cluster_rows(rows: SortedEdges, degrees: np.ndarray, cap: float, step) -> tuple[np.ndarray, np.ndarray]:
    """Cluster label int32 [N] of each vertex (a vertex) and the clusters' volumes int64 [N].

    Label propagation over half of each edge: a vertex looks at its neighbours of higher degree, which weigh
    1 / sqrt(degree), and joins the label with most, if there is room below `cap`. Few neighbours of a vertex that is
    not a hub have lower degree, and hubs shall be joined, not join. Vertices look in order of falling degree.

    Args: rows: of `sort_edges`; degrees: [N], descending; cap: most row ends of a cluster of several vertices.
    """
    marks = np.empty((len(degrees), 2), dtype=np.int32)  # label and pull of a vertex side by side
    labels = marks[:, 0]
    labels[:] = np.arange(len(degrees))
    pulls = marks.view(np.float32)
    pulls[:, 1] = 1 / np.sqrt(np.maximum(degrees, 1))
    volumes = degrees.astype(np.int64)
    tally = np.zeros(len(degrees), dtype=np.float32)
    heard = np.empty(int(degrees.max(initial=0)), dtype=np.int32)
    for number in range(CLUSTER_PASSES):
        done = 0
        while done < len(rows.low):
            done = _join(rows.low, rows.high, done, degrees, float(cap), marks, pulls, volumes, tally, heard)
            step(number * len(rows.low) + done, CLUSTER_PASSES * len(rows.low))
    return labels.copy(), volumes


@kernel(_nrt=False)
def _join(low, high, begin, degrees, cap, marks, pulls, volumes, tally, heard):
    """Vertices from row `begin` on, until some ten million rows are done; returns the next row."""
    size = low.shape[0]
    until = min(size, begin + 10_000_000)
    while begin < until:
        v, count = low[begin], 0
        while begin + count < size and low[begin + count] == v:
            prefetch(MARK, marks, 2 * np.int64(high[min(begin + count + AHEAD, size - 1)]))
            heard[count] = marks[high[begin + count], 0]
            prefetch(MARK, tally, heard[count])
            count += 1
        for i in range(count):
            u = high[begin + i]
            tally[heard[i]] += pulls[u, 1] if u != v else np.float32(0.0)
        own = marks[v, 0]
        best, most = own, tally[own]
        for i in range(count):
            label = heard[i]
            if tally[label] > most and volumes[label] + degrees[v] <= cap:
                best, most = label, tally[label]
        for i in range(count):
            tally[heard[i]] = 0.0
        if best != own:
            volumes[own] -= degrees[v]
            volumes[best] += degrees[v]
            marks[v, 0] = best
        begin += count
    return begin
