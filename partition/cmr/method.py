"""Cluster - merge - refine: the method that keeps copies few at balanced parts.

Clusters of vertices are merged into parts; single edges move, then all edges of a vertex and single edges again.
Where a graph has clusters at every scale, those of one level are merged and those of all levels move. Graphs of up to
`SMALL` edges are always cut that way, and at the end their borders are moved by flows.

Shapes: N vertices, M edges, P parts.
Source: ours; see docs/internals/cmr.md.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.partition.cmr.improve import NORMAL, Effort, improve
from distgnn.partition.cmr.levels import MERGED, find_levels, finest_level, share_inside, v_cycle
from distgnn.partition.core.edges import SMALL, EdgeArrays, Edges, endpoint_degrees
from distgnn.partition.moves.edge_moves import refine
from distgnn.partition.moves.merge import edge_clusters, gather, merge_clusters
from distgnn.partition.moves.replica_table import CopyTable
from distgnn.partition.moves.vertex_moves import move_vertices
from distgnn.partition.sorting.numbering import ordered_edges

# Of the edges inside clusters: from there on V-cycles are worth their time. It is 0.28 in twelve linked copies of
# ogbn-arxiv (a V-cycle: 29 % fewer copies beyond the first in 3 times the seconds), 0.13 in those of slashdot (4 % in 4
# times), 0.02 in RMAT graphs (more copies).
CLUSTERED = 0.2


def cmr(edge_list: Edges, shares: np.ndarray, effort: Effort = NORMAL) -> tuple[np.ndarray, np.ndarray]:
    """Cluster vertices, merge their edges into parts, refine.

    Args:
        shares: [P], see `part_shares`.
    Returns: part [M] of each edge, and the cluster [N] of each vertex.
    Notes: nothing in it is random, and the number of threads makes no difference; memory about 60 bytes for each
        edge, up to `SMALL` edges what flows need too (`BORDER_BYTES` in on_disk/run.py).
    """
    size, num_parts = len(edge_list.src), len(shares)
    degrees = endpoint_degrees(edge_list)
    labels = finest_level(edge_list, degrees, num_parts)
    if num_parts == 1 or size == 0:
        return np.zeros(size, dtype=np.int16), labels
    # From here on time goes into look-ups by vertex: edges are sorted so that most of them hit the cache.
    edges, order, vertices = ordered_edges(edge_list, degrees, labels)
    # degrees[vertices], labels[vertices]: what was known by id, in the order of the new numbers.
    of_vertex = degrees[vertices]
    if size <= SMALL or (effort.turns and share_inside(edge_list, labels) >= CLUSTERED):
        levels = find_levels(edge_list, labels, degrees, num_parts).of(vertices)
        parts, _ = _merge(edges, levels.labels[MERGED], of_vertex, shares)
        if size <= SMALL:
            parts = improve(edges, parts, levels, of_vertex, shares, effort)
        else:
            for _ in range(effort.turns):
                parts = v_cycle(edges, parts, levels, of_vertex, shares)
    else:
        parts, table = _merge(edges, labels[vertices], of_vertex, shares)
        parts = refine(edges, parts, shares, degrees=of_vertex, table=table)
        del table
        for _ in range(effort.turns):
            parts = move_vertices(edges, parts, of_vertex, shares)
            parts = refine(edges, parts, shares, degrees=of_vertex)
    edge_part = np.empty(size, dtype=np.int16)
    run(_scatter, even_chunks(size, 8), order, parts, edge_part)
    return edge_part, labels


def _merge(
    edges: EdgeArrays, labels: np.ndarray, degrees: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, CopyTable]:
    """Part [M] int16 of each edge, clusters [N] being merged, and the table of the cut."""
    clusters, num_clusters = edge_clusters(edges, labels)
    of_cluster, table = merge_clusters(edges, clusters, num_clusters, degrees, shares)
    parts = np.empty(len(clusters), dtype=np.int16)
    run(gather, even_chunks(len(parts), 8), clusters, of_cluster, parts)
    return parts, table


@kernel
def _scatter(start, stop, order, parts, edge_part):
    """edge_part[order[i]] = parts[i]."""
    for i in range(start, stop):
        edge_part[order[i]] = parts[i]
