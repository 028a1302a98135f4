"""Clusters of clusters: contract the clusters of a graph and cluster what is left, a few times over.

Label propagation stops at clusters far below its cap where a graph is clustered at several scales. Between contracted
clusters an edge votes with the number of edges it stands for, over the square root of the neighbour's volume.

Shapes: N vertices, M edges, K clusters.
Source: ours; the scheme is that of Louvain (Blondel et al. 2008, section 2), the votes are those of
label_propagation.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.core.edges import Edges

LEVELS = 2
SWEEPS = 5
FEW_MOVES = 100  # a sweep in which fewer than one in so many clusters moves is the last of its level


class Clusters(NamedTuple):
    """numbers: int32 [N], the cluster of each vertex, from 0 on; between: float32 [K, K], edges between two clusters,
    from both ends (the diagonal is not used); volumes: float64 [K], edge ends."""

    numbers: np.ndarray
    between: sparse.csr_matrix
    volumes: np.ndarray


def nested_clusters(edge_list: Edges, labels: np.ndarray, degrees: np.ndarray, caps: list[float]) -> list[np.ndarray]:
    """Numbers [N] int32, from 0 on, of the clusters with these labels [N], and of coarser ones up to each cap.

    Args: degrees: [N], see `endpoint_degrees`; caps: edge ends of a cluster, of each level from the second on.
    """
    clusters = contract(edge_list, labels, degrees)
    numbers = [clusters.numbers]
    for cap in caps:
        clusters = coarser(clusters, cap)
        numbers.append(clusters.numbers)
    return numbers


def contract(edge_list: Edges, labels: np.ndarray, degrees: np.ndarray) -> Clusters:
    """The graph of the clusters with these labels [N], in the order of labels; degrees: [N], see `endpoint_degrees`.

    Notes: memory about 40 bytes for each edge.
    """
    heads, numbers = np.unique(labels, return_inverse=True)
    numbers = numbers.astype(np.int32)
    ends = numbers[edge_list.src], numbers[edge_list.dst]
    # Converting to CSR adds up the edges between the same two clusters: weights are numbers of edges.
    shape = (len(heads), len(heads))
    between = sparse.coo_matrix((np.ones(len(ends[0]), dtype=np.float32), ends), shape=shape).tocsr()
    # Both ways, so that a cluster finds all its neighbours in its own line.
    between = (between + between.T).tocsr()
    return Clusters(numbers, between, np.bincount(numbers, weights=degrees, minlength=len(heads)))


def coarser(clusters: Clusters, cap: float) -> Clusters:
    """Clusters of clusters; volumes up to `cap` where they grow. Notes: sequential."""
    for _ in range(LEVELS):
        size, between, volumes = len(clusters.volumes), clusters.between, clusters.volumes
        # Every cluster begins alone under its own label.
        found, loads, votes = np.arange(size, dtype=np.int32), volumes.copy(), np.zeros(size)
        for _ in range(SWEEPS):
            graph = between.indptr, between.indices, between.data
            if _vote_and_move(*graph, volumes, float(cap), votes, loads, found) < size // FEW_MOVES:
                break
        heads, numbers = np.unique(found, return_inverse=True)
        lines = between.tocoo()
        ends, shape = (numbers[lines.row], numbers[lines.col]), (len(heads), len(heads))
        between = sparse.coo_matrix((lines.data, ends), shape=shape).tocsr()
        volumes = np.bincount(numbers, weights=volumes, minlength=len(heads))
        clusters = Clusters(numbers.astype(np.int32)[clusters.numbers], between, volumes)
    return clusters


@kernel
def _vote_and_move(indptr, neighbours, weights, volumes, cap, votes, loads, labels):
    """Each cluster in turn joins the label with most votes that has room; returns how many moved.

    Args: votes: float64 [K], zeros before and after; loads: float64 [K], the volumes of the labels so far.
    """
    moved = 0
    for v in range(labels.shape[0]):
        for i in range(indptr[v], indptr[v + 1]):
            if neighbours[i] != v:
                votes[labels[neighbours[i]]] += weights[i] / np.sqrt(max(volumes[neighbours[i]], 1.0))
        best = labels[v]
        most = votes[best]
        for i in range(indptr[v], indptr[v + 1]):
            label = labels[neighbours[i]]
            if votes[label] > most and loads[label] + volumes[v] <= cap:
                best, most = label, votes[label]
        # Only what was used goes back to 0: clearing all K votes for each cluster would be quadratic.
        for i in range(indptr[v], indptr[v + 1]):
            votes[labels[neighbours[i]]] = 0.0
        if best != labels[v]:
            loads[labels[v]] -= volumes[v]
            loads[best] += volumes[v]
            labels[v] = best
            moved += 1
    return moved
