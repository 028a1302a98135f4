"""Cluster - merge - refine: the method that keeps copies few at balanced parts.

Clusters of vertices are merged into parts; single edges move, then all edges of a vertex and single edges again.
Where a graph has clusters at every scale, one level's are merged and all levels' move. Graphs of up to
`SMALL` edges are always cut that way, in several V-cycles.

Shapes: N vertices, M edges, P parts. Source: ours; see docs/internals/cmr.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.partition.cmr.levels import MERGED, find_levels, finest_level, share_inside, v_cycle
from distgnn.partition.core.edges import SMALL, EdgeArrays, Edges, endpoint_degrees
from distgnn.partition.core.sorted_edges import ordered_edges
from distgnn.partition.core.vertex_cut import MOST_ARCS, owned_limit
from distgnn.partition.refinement.cut_state import arc_limit, copies_with_owners, even_inner, start_state
from distgnn.partition.refinement.edge_moves import refine
from distgnn.partition.refinement.group_loads import row_excess
from distgnn.partition.refinement.groups import groups_of, without_gaps
from distgnn.partition.refinement.merge import merge_groups
from distgnn.partition.refinement.replica_table import CopyTable
from distgnn.partition.refinement.vertex_moves import move_vertices

# Of the edges inside clusters: from there on V-cycles are worth their time. It is 0.28 in twelve linked copies of
# ogbn-arxiv (a V-cycle: 29 % fewer copies beyond the first in 3 times the seconds), 0.13 in those of slashdot (4 % in 4
# times), 0.02 in RMAT graphs (more copies).
CLUSTERED = 0.2

MOST_EXTRA_PRICE = 4.0  # of imbalance, in V-cycles: 1, 2, then this


class Effort(NamedTuple):
    """How much a cut is improved; each goes the way of the one before it, only further (docs/internals/cmr.md).

    cycles: V-cycles; turns: on graphs of more than `SMALL` edges, how often clusters of all levels move, or, where
    there are none, all edges of a vertex, and single edges after them.
    """

    cycles: int
    turns: int


EFFORTS = {"fast": Effort(cycles=3, turns=0), "normal": Effort(cycles=8, turns=1), "best": Effort(cycles=24, turns=4)}
NORMAL = EFFORTS["normal"]


def cmr(edge_list: Edges, shares: np.ndarray, effort: Effort = NORMAL) -> tuple[np.ndarray, np.ndarray]:
    """Cluster vertices, merge their edges into parts, refine.

    Returns: part [M] of each edge, and the cluster [N] of each vertex.
    Notes: nothing in it is random, and the number of threads makes no difference; memory about 60 bytes for each edge.
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
        levels = [one[vertices] for one in find_levels(edge_list, labels, degrees, num_parts)]
        parts, _ = _merge(edges, levels[MERGED], of_vertex, shares)
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
    edge_part[order] = parts
    return edge_part, labels


def _merge(
    edges: EdgeArrays, labels: np.ndarray, degrees: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, CopyTable]:
    """Part [M] int16 of each edge, clusters [N] being merged, and the table of the cut."""
    clusters, num_clusters = without_gaps(labels[edges.src])
    of_cluster, table = merge_groups(groups_of(edges, clusters, num_clusters), degrees, shares, len(clusters))
    return of_cluster[clusters], table


def refine_cut(edge_list: Edges, edge_part: np.ndarray, shares: np.ndarray, effort: Effort = NORMAL) -> np.ndarray:
    """Part [M] int16 of each edge of a cut by any method: single edges moved, up to `SMALL` edges also the rest."""
    edge_part = refine(edge_list, edge_part, shares)
    if len(shares) == 1 or not 0 < len(edge_part) <= SMALL:
        return edge_part
    degrees = endpoint_degrees(edge_list)
    labels = finest_level(edge_list, degrees, len(shares))
    edges, order, vertices = ordered_edges(edge_list, degrees, labels)
    levels = [one[vertices] for one in find_levels(edge_list, labels, degrees, len(shares))]
    edge_part[order] = improve(edges, edge_part[order], levels, degrees[vertices], shares, effort)
    return edge_part


def improve(
    edges: EdgeArrays,
    parts: np.ndarray,
    levels: list[np.ndarray],
    degrees: np.ndarray,
    shares: np.ndarray,
    effort: Effort = NORMAL,
) -> np.ndarray:
    """Part [M] int16 after V-cycles: the cut with fewest copies that was met."""
    num_vertices, max_arcs = int(np.count_nonzero(degrees)), arc_limit(edges, shares, MOST_ARCS)
    # A vertex in one part only must be owned there: the most that a part may have.
    max_owned = owned_limit(num_vertices, shares)
    best, fewest = parts, np.inf
    for cycle in range(effort.cycles):
        # A price of imbalance that rises leaves fewer copies than one that is high at once.
        parts = v_cycle(edges, parts, levels, degrees, shares, min(2.0**cycle, MOST_EXTRA_PRICE))
        parts = even_inner(edges, parts, degrees, shares, max_owned, max_arcs)
        table = start_state(edges, parts, len(shares), degrees).table
        # What imbalance counts in copies is added.
        copies = copies_with_owners(table, max_owned) + row_excess(table, num_vertices, shares)
        if copies < fewest:
            best, fewest = parts, copies
    return best
