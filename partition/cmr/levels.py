"""Clusters at every scale, and moves of them from the coarsest to the finest: the multilevel part of a cut.

A level moves all edges that a cluster has in one part, so levels need not follow the border of a cut. Each level is
contracted from the one below and clustered again: an edge between contracted clusters votes with the number of edges it
stands for, over the square root of the neighbour's volume (Blondel et al. 2008, section 2).

`cluster_places` is an order for cluster batches, of the graph alone: any range of it has many edges inside.

Shapes: N vertices, M edges, P parts.
Source: ours; multilevel partitioning with V-cycles: Karypis and Kumar 1998; Sanders and Schulz, ESA'11, section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.cmr.label_propagation import adjacency, cluster_vertices
from distgnn.partition.core.edges import EdgeArrays, Edges, endpoint_degrees
from distgnn.partition.refinement.edge_moves import refine
from distgnn.partition.refinement.group_loads import row_price
from distgnn.partition.refinement.group_moves import EXTRA_PRICE
from distgnn.partition.refinement.vertex_moves import move_vertices

CLUSTERS_PER_PART = 32  # that are small enough to balance parts with: the cap of the finest level
PER_PART = (1024, 256, 64, 32, 16, 8, 4)  # clusters of the coarser levels, if all were full
MERGED = 3  # of the levels: the one whose clusters are merged into the first parts

LEVELS = 2
SWEEPS = 5
FEW_MOVES = 100  # a sweep in which fewer than one cluster in this number moves is the last of its level

CLUSTERS = (4096, 512, 64)  # least number at each level: no cluster has a larger share of the edges


class Clusters(NamedTuple):
    """numbers: int32 [N], the cluster of each vertex, from 0 on; between: float32 [K, K], edges between two clusters,
    from both ends (the diagonal is not used); volumes: float64 [K], edge ends."""

    numbers: np.ndarray
    between: sparse.csr_matrix
    volumes: np.ndarray


def nested_clusters(edge_list: Edges, labels: np.ndarray, degrees: np.ndarray, caps: list[float]) -> list[np.ndarray]:
    """Numbers [N] int32, from 0 on, of the clusters with these labels [N], and of coarser ones up to each cap."""
    clusters = contract(edge_list, labels, degrees)
    numbers = [clusters.numbers]
    for cap in caps:
        clusters = coarser(clusters, cap)
        numbers.append(clusters.numbers)
    return numbers


def contract(edge_list: Edges, labels: np.ndarray, degrees: np.ndarray) -> Clusters:
    """The graph of the clusters with these labels [N], in the order of labels; memory about 40 bytes for each edge."""
    ones = np.ones(len(edge_list.src), dtype=np.float32)
    numbers, between, volumes = _contracted(labels, edge_list.src, edge_list.dst, ones, degrees)
    # Both ways, so that a cluster finds all its neighbours in its own line.
    return Clusters(numbers, (between + between.T).tocsr(), volumes)


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
        lines = between.tocoo()
        numbers, between, volumes = _contracted(found, lines.row, lines.col, lines.data, volumes)
        clusters = Clusters(numbers[clusters.numbers], between, volumes)
    return clusters


def _contracted(
    labels: np.ndarray, src: np.ndarray, dst: np.ndarray, weights: np.ndarray, volumes: np.ndarray
) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
    """The number int32 from 0 on behind each label, the edges between numbers, and the sums of volumes."""
    heads, numbers = np.unique(labels, return_inverse=True)
    numbers, shape = numbers.astype(np.int32), (len(heads), len(heads))
    # Converting to CSR adds up the edges between the same two clusters: weights are numbers of edges.
    between = sparse.coo_matrix((weights, (numbers[src], numbers[dst])), shape=shape).tocsr()
    return numbers, between, np.bincount(numbers, weights=volumes, minlength=len(heads))


@kernel
def _vote_and_move(indptr, neighbours, weights, volumes, cap, votes, loads, labels):
    """Each cluster in turn joins the label with most votes that has room; returns how many moved."""
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


def find_levels(edge_list: Edges, labels: np.ndarray, degrees: np.ndarray, num_parts: int) -> list[np.ndarray]:
    """Labels int32 [N] of each level, finest first, the numbers of clusters from 0 on.

    Args: labels: [N], of the finest level (vertex ids).
    """
    caps = [2 * len(edge_list.src) / (per_part * num_parts) for per_part in PER_PART]
    return nested_clusters(edge_list, labels, degrees, caps)


def finest_level(edge_list: Edges, degrees: np.ndarray, num_parts: int) -> np.ndarray:
    """Labels [N] int32, vertex ids, of clusters that are small enough to balance parts with."""
    cap = 2 * len(edge_list.src) / (CLUSTERS_PER_PART * num_parts)  # edge ends
    return cluster_vertices(*adjacency(edge_list, degrees), cap)


def share_inside(edge_list: Edges, labels: np.ndarray) -> float:
    """Of all edges, those inside a cluster; labels: [N]."""
    return np.count_nonzero(labels[edge_list.src] == labels[edge_list.dst]) / max(len(edge_list.src), 1)


def v_cycle(
    edges: EdgeArrays,
    parts: np.ndarray,
    levels: list[np.ndarray],
    degrees: np.ndarray,
    shares: np.ndarray,
    extra_price: float = EXTRA_PRICE,
) -> np.ndarray:
    """Move clusters, coarsest first, then vertices, then single edges: part [M] int16."""
    of_rows = row_price(len(shares))
    for labels in reversed(levels):
        of_edge = labels[edges.src]
        parts = move_vertices(edges, parts, degrees, shares, of_edge, extra_price=extra_price, row_price=of_rows)
    parts = move_vertices(edges, parts, degrees, shares, extra_price=extra_price, row_price=of_rows)
    return refine(edges, parts, shares, degrees=degrees)


def cluster_places(edge_list: Edges) -> np.ndarray:
    """The place of each vertex in the order, int64 [N]: a permutation of 0 … N - 1."""
    degrees = endpoint_degrees(edge_list)
    ends = 2 * len(edge_list.src)
    most, *fewer = CLUSTERS
    labels = cluster_vertices(*adjacency(edge_list, degrees), ends / most)
    levels = nested_clusters(edge_list, labels, degrees, [ends / at_least for at_least in fewer])
    # The coarsest decides first, the vertex's id last.
    order = np.lexsort((np.arange(edge_list.num_nodes), *levels))
    places = np.empty(edge_list.num_nodes, dtype=np.int64)
    places[order] = np.arange(edge_list.num_nodes)
    return places
