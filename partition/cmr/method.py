"""Cluster - merge - refine: the method that keeps copies few at balanced parts.

Graphs of up to `SMALL` edges are cut twice, from fine and from coarse clusters; vertices and single edges then move in
turn for some rounds, the better cut is taken, and its borders are moved by flows.

Shapes: N vertices, M edges, P parts.
Source: ours; see docs/internals/cmr.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.partition.cmr.coarsen import coarser_clusters
from distgnn.partition.cmr.improve import num_copies, refine_borders
from distgnn.partition.cmr.label_propagation import adjacency, cluster_vertices
from distgnn.partition.core.edges import SMALL, EdgeArrays, Edges, endpoint_degrees
from distgnn.partition.moves.edge_moves import refine
from distgnn.partition.moves.merge import edge_clusters, gather, merge_clusters
from distgnn.partition.moves.vertex_moves import move_vertices
from distgnn.partition.sorting.renumber import ordered_edges

CLUSTERS_PER_PART = 32
COARSE_PER_PART = 8
ROUNDS = 3


class _Draft(NamedTuple):
    """A cut of renumbered edges: part [M] of each; order: the edge of the edge list behind each; degrees: [N]."""

    edges: EdgeArrays
    order: np.ndarray
    degrees: np.ndarray
    parts: np.ndarray

    def copies(self, num_parts: int) -> int:
        return num_copies(self.edges, self.parts, self.degrees, num_parts)

    def in_first_order(self) -> np.ndarray:
        edge_part = np.empty(len(self.parts), dtype=np.int16)
        run(_scatter, even_chunks(len(self.parts), 8), self.order, self.parts, edge_part)
        return edge_part


def cmr(edge_list: Edges, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cluster vertices, merge their edges into parts, refine edge by edge.

    Args:
        shares: [P], see `part_shares`.
    Returns: part [M] of each edge, and the cluster [N] of each vertex.
    Notes: nothing in it is random, and the number of threads makes no difference; memory about 60 bytes for each
        edge, up to `SMALL` edges what flows need too (`BORDER_BYTES` in on_disk/run.py).
    """
    size, num_parts = len(edge_list.src), len(shares)
    degrees = endpoint_degrees(edge_list)
    # 2 * size edge ends, in clusters that are small enough to balance the parts with.
    cap = 2 * size / (CLUSTERS_PER_PART * num_parts)
    labels = cluster_vertices(*adjacency(edge_list, degrees), cap)
    if num_parts == 1 or size == 0:
        return np.zeros(size, dtype=np.int16), labels
    draft = _draft(edge_list, degrees, labels, shares)
    if size <= SMALL:
        # Neither is better on all graphs: coarse clusters are on web-notredame, fine ones on dblp-2010 and arxiv.
        coarse = coarser_clusters(edge_list, labels, degrees, 2 * size / (COARSE_PER_PART * num_parts))
        drafts = [_in_rounds(each, shares) for each in (draft, _draft(edge_list, degrees, coarse, shares))]
        draft = min(drafts, key=lambda each: each.copies(num_parts))
        draft = draft._replace(parts=refine_borders(draft.edges, draft.parts, draft.degrees, shares))
    return draft.in_first_order(), labels


def _draft(edge_list: Edges, degrees: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> _Draft:
    """Merge and refine from these clusters."""
    # From here on time goes into look-ups by vertex: edges are sorted so that most of them hit the cache.
    rows, order, vertices = ordered_edges(edge_list, degrees, labels)
    # labels[vertices], degrees[vertices]: what was known by id, in the order of the new numbers.
    clusters, num_clusters = edge_clusters(rows, labels[vertices])
    degrees = degrees[vertices]
    of_cluster, table = merge_clusters(rows, clusters, num_clusters, degrees, shares)
    parts = np.empty(len(clusters), dtype=np.int16)
    run(gather, even_chunks(len(parts), 8), clusters, of_cluster, parts)
    parts = refine(rows, parts, shares, degrees=degrees, table=table)
    return _Draft(rows, order, degrees, parts)


def _in_rounds(draft: _Draft, shares: np.ndarray) -> _Draft:
    """Move vertices, then refine, some times over."""
    parts = draft.parts
    for _ in range(ROUNDS):
        parts = move_vertices(draft.edges, parts, draft.degrees, shares)
        parts = refine(draft.edges, parts, shares, degrees=draft.degrees)
    return draft._replace(parts=parts)


@kernel
def _scatter(start: int, stop: int, order: np.ndarray, parts: np.ndarray, edge_part: np.ndarray) -> None:
    """edge_part[order[i]] = parts[i]."""
    for i in range(start, stop):
        edge_part[order[i]] = parts[i]
