"""Cluster - merge - refine: the method that keeps copies few at balanced parts.

Clusters of vertices are merged into parts; single edges move, then all edges of a vertex and single edges again.
Where a graph has clusters at every scale, those of one level are merged and those of all levels move. Graphs of up to
`SMALL` edges are always cut that way. At the end flows find the best border near the present one; moves at prices that
favour concentration first lead to another border, from where flows go on.

Shapes: N vertices, M edges, P parts. Source: ours; see docs/internals/cmr.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from distgnn.partition.cmr.levels import MERGED, find_levels, finest_level, share_inside, v_cycle
from distgnn.partition.core.edges import SMALL, EdgeArrays, Edges, endpoint_degrees
from distgnn.partition.core.shares import MOST_ARCS, owned_limit
from distgnn.partition.core.sorted_edges import ordered_edges
from distgnn.partition.flow.pair_rounds import Limits, cut_pairs, no_memory
from distgnn.partition.moves.cut_state import MOST_COPIES, arc_limit, copies_with_owners, even_inner, start_state
from distgnn.partition.moves.edge_moves import refine
from distgnn.partition.moves.group_loads import row_excess, row_goal
from distgnn.partition.moves.groups import groups_of, without_gaps
from distgnn.partition.moves.merge import merge_groups
from distgnn.partition.moves.replica_table import CopyTable
from distgnn.partition.moves.vertex_moves import move_vertices

# Of the edges inside clusters: from there on V-cycles are worth their time. It is 0.28 in twelve linked copies of
# ogbn-arxiv (a V-cycle: 29 % fewer copies beyond the first in 3 times the seconds), 0.13 in those of slashdot (4 % in 4
# times), 0.02 in RMAT graphs (more copies).
CLUSTERED = 0.2

EXTRA_PRICES = (1.0, 2.0, 4.0)  # of imbalance, in the V-cycles before the first flows; then the last of them
SCHEDULE_BETWEEN = (0.5, 0.1, 0.0, 0.0)  # values of s in the sweeps between two rounds of flows

# One array of parts, or one for each kind of edges: `in_cycles` only hands them on.
Parts = TypeVar("Parts")


class Effort(NamedTuple):
    """How much a cut is improved; each goes the way of the one before it, only further (docs/internals/cmr.md).

    cycles: rounds of flows, with a V-cycle between two; least_saved: of the copies beyond the first, flows that save
    less are the last; turns: on graphs that are too large for flows, how often clusters of all levels move, or, where
    there are none, all edges of a vertex, and single edges after them.
    """

    cycles: int
    least_saved: float
    turns: int


EFFORTS = {
    "fast": Effort(cycles=1, least_saved=0.005, turns=0),
    "normal": Effort(cycles=3, least_saved=0.001, turns=1),
    "best": Effort(cycles=24, least_saved=0.0005, turns=4),
}
NORMAL = EFFORTS["normal"]


def cmr(edge_list: Edges, shares: np.ndarray, effort: Effort = NORMAL) -> tuple[np.ndarray, np.ndarray]:
    """Cluster vertices, merge their edges into parts, refine.

    Returns: part [M] of each edge, and the cluster [N] of each vertex.
    Notes: nothing in it is random, and the number of threads makes no difference; memory about 60 bytes for each edge,
        up to `SMALL` edges what flows need too (`BORDER_BYTES` in on_disk/run.py).
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
    """V-cycles, then borders: part [M] int16 with fewer copies. Args: as of `refine_borders`."""
    for extra_price in EXTRA_PRICES:
        parts = v_cycle(edges, parts, levels, degrees, shares, extra_price=extra_price)
    return refine_borders(edges, parts, levels, degrees, shares, effort)


def refine_borders(
    edges: EdgeArrays,
    parts: np.ndarray,
    levels: list[np.ndarray],
    degrees: np.ndarray,
    shares: np.ndarray,
    effort: Effort = NORMAL,
) -> np.ndarray:
    """Part [M] int16 with fewer copies."""
    num_parts = len(shares)
    # Of two weights of an edge, arcs are limited; the second one is for owners, which roles.py moves as edges.
    weights = np.zeros((len(edges.src), 2), dtype=np.float32)
    weights[:, 0] = np.where(edges.src == edges.dst, 1, 2) if edges.two_way else 1
    max_weight = np.stack([arc_limit(edges, shares, MOST_ARCS), np.full(num_parts, np.inf)], axis=1)
    # A vertex in one part only must be owned there: so many a part may have.
    num_vertices = int(np.count_nonzero(degrees))
    max_owned = owned_limit(num_vertices, shares)
    memory = no_memory(num_parts)

    def flows(found: np.ndarray) -> tuple[np.ndarray, bool]:
        copies = num_copies(edges, found, degrees, num_parts)
        most = MOST_COPIES * copies * shares, max_owned, row_goal(copies, num_vertices, shares)
        return cut_pairs(edges, found, Limits(weights, max_weight, np.stack(most, axis=1)), memory, effort.least_saved)

    def even(found: np.ndarray) -> np.ndarray:
        return even_inner(edges, found, degrees, shares, max_owned, max_weight[:, 0])

    def sweeps(found: np.ndarray) -> np.ndarray:
        return even(v_cycle(edges, found, levels, degrees, shares, SCHEDULE_BETWEEN, EXTRA_PRICES[-1]))

    def count(found: np.ndarray) -> float:
        table = start_state(edges, found, num_parts, degrees).table
        return copies_with_owners(table, max_owned) + row_excess(table, num_vertices, shares)

    return even(in_cycles(even(parts), flows, sweeps, count, effort.cycles))


def in_cycles(
    parts: Parts,
    flows: Callable[[Parts], tuple[Parts, bool]],
    sweeps: Callable[[Parts], Parts],
    count: Callable[[Parts], float],
    cycles: int,
) -> Parts:
    """The parts with fewest copies that were met.

    Args: flows: flows(parts) -> (parts, whether to go on); then sweeps(parts) -> parts; count: copies, and what
        imbalance counts in copies; cycles: most turns.
    """
    best, fewest = parts, count(parts)
    # The last turn ends with flows: sweeps without flows after them would only be another start.
    for left in reversed(range(cycles)):
        parts, worth_while = flows(parts)
        copies = count(parts)
        if copies < fewest:
            best, fewest = parts, copies
        if not (left and worth_while):
            break
        # Sweeps may add copies: their prices ask for concentration first. The best cut so far is kept.
        parts = sweeps(parts)
    return best


def num_copies(edges: Edges, parts: np.ndarray, degrees: np.ndarray, num_parts: int) -> int:
    return int(start_state(edges, parts, num_parts, degrees).num_copies.sum())
