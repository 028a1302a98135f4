"""Cluster - merge - refine: the method that keeps copies few at balanced parts.

Source: ours; see docs/partitioning.md.
"""

from __future__ import annotations

import numpy as np

from distgnn.partition.cluster import adjacency, cluster_vertices, edge_clusters
from distgnn.partition.merge import merge_clusters
from distgnn.partition.refine import refine
from distgnn.partition.streaming import endpoint_degrees

CLUSTERS_PER_PART = 32


def cmr(edge_list, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cluster vertices, merge their edges into parts, refine edge by edge.

    Args: shares: [P], see `part_shares`.
    Returns: part [M] of each row, and the cluster [N] of each vertex.
    Notes: nothing in it is random, and the number of threads makes no difference; memory about 60 bytes for each row.
    """
    rows, num_parts = len(edge_list.src), len(shares)
    degrees = endpoint_degrees(edge_list)
    indptr, neighbours = adjacency(edge_list)
    labels = cluster_vertices(indptr, neighbours, 2 * rows / (CLUSTERS_PER_PART * num_parts))
    del indptr, neighbours
    if num_parts == 1 or rows == 0:
        return np.zeros(rows, dtype=np.int16), labels
    clusters, num_clusters = edge_clusters(edge_list, degrees, labels)
    parts = merge_clusters(edge_list, clusters, num_clusters, degrees, shares)[clusters]
    return refine(edge_list, parts, shares), labels
