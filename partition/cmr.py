"""Cluster - merge - refine: the method that keeps copies few at balanced parts.

On graphs of up to `SMALL` rows, vertices and single edges then move in turn for some rounds.

Source: ours; see docs/partitioning.md.
"""

from __future__ import annotations

import numpy as np

from distgnn.partition.cluster import adjacency, cluster_vertices, stream_clusters
from distgnn.partition.merge import edge_clusters, merge_clusters
from distgnn.partition.refine import refine
from distgnn.partition.reorder import ordered_rows
from distgnn.partition.streaming import endpoint_degrees
from distgnn.partition.vertex_moves import move_vertices

CLUSTERS_PER_PART = 32
ROUNDS = 3
SMALL = 5 * 10**6  # rows; a round costs about as much as the first refinement


def cmr(edge_list, shares: np.ndarray, stream: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Cluster vertices, merge their edges into parts, refine edge by edge.

    Args:
        shares: [P], see `part_shares`.
        stream: take the clusters from one pass over the rows: faster, no adjacency, more copies.
    Returns: part [M] of each row, and the cluster [N] of each vertex.
    Notes: nothing in it is random, and the number of threads makes no difference; memory about 60 bytes for each row.
    """
    size, num_parts = len(edge_list.src), len(shares)
    degrees = endpoint_degrees(edge_list)
    cap = 2 * size / (CLUSTERS_PER_PART * num_parts)
    if stream:
        labels = stream_clusters(edge_list, degrees, cap)
    else:
        labels = cluster_vertices(*adjacency(edge_list), cap)
    if num_parts == 1 or size == 0:
        return np.zeros(size, dtype=np.int16), labels
    rows, order, vertices = ordered_rows(edge_list, degrees, labels)
    clusters, num_clusters = edge_clusters(rows, labels[vertices])
    parts = merge_clusters(rows, clusters, num_clusters, degrees[vertices], shares)[clusters]
    edge_part = np.empty(size, dtype=np.int16)
    parts = refine(rows, parts, shares)
    for _ in range(ROUNDS if size <= SMALL and not stream else 0):
        parts = refine(rows, move_vertices(rows, parts, degrees[vertices], shares), shares)
    edge_part[order] = parts
    return edge_part, labels
