"""Clusters: label propagation with a cap on a cluster's volume, and the fine parts of edges it gives.

A vertex takes the label whose bearers among its neighbours weigh most; a neighbour weighs 1 / sqrt(degree), so hubs
do not rule. A block of vertices is evaluated in parallel against frozen labels, then the moves are made in order under
the cap: the result does not depend on the number of threads.

Shapes: N vertices, M rows of the edge list, K clusters.
Source: ours; label propagation: Raghavan et al. 2007.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels import csr_from_edges
from distgnn.kernels.jit import kernel
from distgnn.kernels.threads import get_num_threads, run

SWEEPS = 2
BLOCKS = 128  # block b holds the vertices b, b + 128, …: neighbours in storage order see each other's last move
SMALL = 10_000  # vertices below which threads do not pay


def adjacency(edge_list) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of every row as CSR: indptr int64 [N + 1], neighbours [2 M]; a self-loop counts twice."""
    ends = np.concatenate([edge_list.src, edge_list.dst])
    others = np.concatenate([edge_list.dst, edge_list.src])
    indptr, neighbours, _ = csr_from_edges(others, ends, edge_list.num_nodes)
    return indptr, neighbours


def cluster_vertices(indptr: np.ndarray, neighbours: np.ndarray, cap: float, sweeps: int = SWEEPS) -> np.ndarray:
    """Cluster label [N] int32 of each vertex (a vertex id); no cluster's degrees sum to more than `cap`.

    Notes: memory 24 bytes for each vertex, and 4 for each vertex and thread.
    """
    num_nodes = len(indptr) - 1
    degrees = np.diff(indptr)
    labels = np.arange(num_nodes, dtype=np.int32)
    volumes = degrees.copy()
    pull = (1.0 / np.sqrt(np.maximum(degrees, 1))).astype(np.float32)
    wanted = np.empty(num_nodes, dtype=np.int32)
    threads = get_num_threads() if num_nodes > SMALL else 1
    votes = np.zeros((threads, num_nodes), dtype=np.float32)
    blocks = min(BLOCKS, max(num_nodes, 1))
    for block in [block for _ in range(sweeps) for block in range(blocks)]:
        members = len(range(block, num_nodes, blocks))
        bounds = np.arange(threads + 1) * members // threads
        args = (bounds, block, blocks, indptr, neighbours, labels, volumes, pull, float(cap), votes, wanted)
        run(_vote, range(threads + 1), *args)
        _move(block, blocks, indptr, float(cap), wanted, labels, volumes)
    return labels


@kernel
def _vote(start, stop, bounds, block, blocks, indptr, neighbours, labels, volumes, pull, cap, votes, wanted):
    """wanted[v] = the label with most votes that has room for v (its own on a tie), piece by piece."""
    tally = votes[start]
    for member in range(bounds[start], bounds[stop]):
        v = block + member * blocks
        degree = indptr[v + 1] - indptr[v]
        for i in range(indptr[v], indptr[v + 1]):
            if neighbours[i] != v:
                tally[labels[neighbours[i]]] += pull[neighbours[i]]
        best = labels[v]
        most = tally[best]
        for i in range(indptr[v], indptr[v + 1]):
            label = labels[neighbours[i]]
            if tally[label] > most and volumes[label] + degree <= cap:
                best, most = label, tally[label]
        for i in range(indptr[v], indptr[v + 1]):
            tally[labels[neighbours[i]]] = 0.0
        wanted[v] = best


@kernel
def _move(block, blocks, indptr, cap, wanted, labels, volumes):
    for v in range(block, labels.shape[0], blocks):
        degree = indptr[v + 1] - indptr[v]
        if wanted[v] != labels[v] and volumes[wanted[v]] + degree <= cap:
            volumes[labels[v]] -= degree
            volumes[wanted[v]] += degree
            labels[v] = wanted[v]


def edge_clusters(edge_list, degrees: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Cluster [M] int32 of each row, numbered from 0 without gaps, and their number K.

    A row belongs to the cluster of its lower-degree end (ties: lower id).
    """
    clusters = np.empty(len(edge_list.src), dtype=np.int32)
    _lower_end(edge_list.src, edge_list.dst, degrees, labels, clusters)
    present = np.zeros(len(labels), dtype=bool)
    present[clusters] = True
    numbers = (np.cumsum(present) - 1).astype(np.int32)
    return numbers[clusters], int(np.count_nonzero(present))


@kernel
def _lower_end(src, dst, degrees, labels, clusters):
    for e in range(src.shape[0]):
        u, v = src[e], dst[e]
        lower = u if degrees[u] < degrees[v] or (degrees[u] == degrees[v] and u < v) else v
        clusters[e] = labels[lower]
