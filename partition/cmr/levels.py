"""Clusters at every scale, and moves of them from the coarsest to the finest: the multilevel part of a cut.

What a level moves is all edges that a cluster has in one part. So levels need not follow the border that a cut has by
now, and the same levels serve again after everything else has moved: each *V-cycle* begins with what is left to gain at
the coarsest scale.

Shapes: N vertices, M edges, P parts.
Source: ours; multilevel partitioning with V-cycles: Karypis and Kumar 1998; Sanders and Schulz, ESA'11, section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.cmr.coarsen import nested_clusters
from distgnn.partition.cmr.label_propagation import adjacency, cluster_vertices
from distgnn.partition.core.edges import EdgeArrays, Edges
from distgnn.partition.moves.edge_moves import SCHEDULE, refine
from distgnn.partition.moves.group_moves import EXTRA_PRICE
from distgnn.partition.moves.row_load import row_price
from distgnn.partition.moves.vertex_moves import move_clusters, move_vertices

CLUSTERS_PER_PART = 32  # that are small enough to balance parts with: the cap of the finest level
PER_PART = (1024, 256, 64, 32, 16, 8, 4)  # clusters of the coarser levels, if all were full
MERGED = 3  # of the levels: the one whose clusters are merged into the first parts


class Levels(NamedTuple):
    """labels: int32 [N] of each level, finest first, the numbers of clusters from 0 on."""

    labels: list[np.ndarray]

    def of(self, vertices: np.ndarray) -> Levels:
        """Labels of vertices [N] that are numbered anew."""
        return Levels([labels[vertices] for labels in self.labels])


def find_levels(edge_list: Edges, labels: np.ndarray, degrees: np.ndarray, num_parts: int) -> Levels:
    """Clusters of clusters.

    Args: labels: [N], those of the finest level (vertex ids); degrees: [N], see `endpoint_degrees`.
    """
    caps = [2 * len(edge_list.src) / (per_part * num_parts) for per_part in PER_PART]
    return Levels(nested_clusters(edge_list, labels, degrees, caps))


def finest_level(edge_list: Edges, degrees: np.ndarray, num_parts: int) -> np.ndarray:
    """Labels [N] int32, vertex ids, of clusters that are small enough to balance parts with."""
    cap = 2 * len(edge_list.src) / (CLUSTERS_PER_PART * num_parts)  # so many edge ends
    return cluster_vertices(*adjacency(edge_list, degrees), cap)


def share_inside(edge_list: Edges, labels: np.ndarray) -> float:
    """Of all edges, those inside a cluster; labels: [N]."""
    return _count_inside(edge_list.src, edge_list.dst, labels) / max(len(edge_list.src), 1)


@kernel(_nrt=False)
def _count_inside(src, dst, labels):
    inside = 0
    for e in range(src.shape[0]):
        inside += labels[src[e]] == labels[dst[e]]
    return inside


def v_cycle(
    edges: EdgeArrays,
    parts: np.ndarray,
    levels: Levels,
    degrees: np.ndarray,
    shares: np.ndarray,
    schedule: tuple[float, ...] = SCHEDULE,
    extra_price: float = EXTRA_PRICE,
) -> np.ndarray:
    """Move clusters, coarsest first, then vertices, then single edges: part [M] int16.

    Args: edges: sorted by source, numbered as the levels are; parts: int16 [M]; degrees: [N]; shares: [P], see
        `part_shares`; schedule: of `refine`; extra_price: of imbalance, of `move_groups`.
    """
    of_rows = row_price(len(shares))
    for labels in reversed(levels.labels):
        parts = move_clusters(edges, parts, labels[edges.src], degrees, shares, extra_price, of_rows)
    parts = move_vertices(edges, parts, degrees, shares, extra_price=extra_price, row_price=of_rows)
    return refine(edges, parts, shares, degrees=degrees, schedule=schedule)
