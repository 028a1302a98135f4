"""Clusters for `cmr-stream`: label propagation along sorted rows, which are half of an adjacency.

Shapes: N vertices, M rows.
Source: ours; label propagation: Raghavan et al. 2007.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.jit import kernel
from distgnn.partition.stream_sort import SortedRows

CLUSTER_PASSES = 3


def cluster_rows(rows: SortedRows, degrees: np.ndarray, cap: float, step) -> tuple[np.ndarray, np.ndarray]:
    """Cluster label int32 [N] of each vertex (a vertex) and the clusters' volumes int64 [N].

    Label propagation over half of each edge: a vertex looks at its neighbours of higher degree, which weigh
    1 / sqrt(degree), and joins the label with most, if there is room below `cap`. Few neighbours of a vertex that is
    not a hub have lower degree, and hubs shall be joined, not join. Vertices look in order of falling degree.

    Args: rows: of `sort_rows`; degrees: [N], descending; cap: most row ends of a cluster of several vertices.
    """
    labels = np.arange(len(degrees), dtype=np.int32)
    volumes = degrees.astype(np.int64)
    pull = (1 / np.sqrt(np.maximum(degrees, 1))).astype(np.float32)
    tally = np.zeros(len(degrees), dtype=np.float32)
    for number in range(CLUSTER_PASSES):
        done = 0
        while done < len(rows.low):
            done = _join(rows.low, rows.high, done, degrees, float(cap), labels, volumes, pull, tally)
            step(number * len(rows.low) + done, CLUSTER_PASSES * len(rows.low))
    return labels, volumes


@kernel
def _join(low, high, begin, degrees, cap, labels, volumes, pull, tally):
    """Vertices from row `begin` on, until some ten million rows are done; returns the next row."""
    size = low.shape[0]
    until = min(size, begin + 10_000_000)
    while begin < until:
        v, end = low[begin], begin
        while end < size and low[end] == v:
            if high[end] != v:
                tally[labels[high[end]]] += pull[high[end]]
            end += 1
        best = labels[v]
        most = tally[best]
        for e in range(begin, end):
            label = labels[high[e]]
            if tally[label] > most and volumes[label] + degrees[v] <= cap:
                best, most = label, tally[label]
        for e in range(begin, end):
            tally[labels[high[e]]] = 0.0
        volumes[labels[v]] -= degrees[v]
        volumes[best] += degrees[v]
        labels[v] = best
        begin = end
    return begin
