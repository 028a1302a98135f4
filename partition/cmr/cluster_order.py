"""An order of all vertices in which clusters, and clusters of clusters, stand together: for cluster batches.

Any range of it is a group of vertices with many edges among them, so ranges of equal length are clusters of equal size
for any number of them. It is made of the graph alone: no cut of it, and no number of parts, changes it.

Shapes: N vertices, M edges.
"""

from __future__ import annotations

import numpy as np

from distgnn.partition.cmr.coarsen import nested_clusters
from distgnn.partition.cmr.label_propagation import adjacency, cluster_vertices
from distgnn.partition.core.edges import Edges, endpoint_degrees

CLUSTERS = (4096, 512, 64)  # at least so many of each level: no cluster has a larger share of the edges


def cluster_places(edge_list: Edges) -> np.ndarray:
    """The place of each vertex in the order, int64 [N]: a permutation of 0 … N - 1.

    Notes: nothing in it is random, and the number of threads makes no difference. Memory about 60 bytes for each edge.
    """
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
