"""The last steps of a cut of a graph that is not large: borders between two parts at a time, then vertices and edges.

Flows find the best border near the present one; moves of vertices and edges, at prices that favour concentration first,
lead to another from where flows go on.

Shapes: M rows, N vertices, P parts.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from distgnn.partition.core.edges import SMALL, EdgeArrays, endpoint_degrees
from distgnn.partition.core.owners import owned_limit
from distgnn.partition.flow.pair_rounds import Limits, cut_pairs
from distgnn.partition.moves.edge_moves import arc_limit, refine, start_state
from distgnn.partition.moves.vertex_moves import move_vertices
from distgnn.partition.sorting.renumber import ordered_edges

CYCLES = 4
BETWEEN = (0.5, 0.1, 0.0, 0.0)  # prices of the sweeps between two rounds of flows
ARCS = 1.03  # of its share, a part's most
HELD = 1.015  # the same for vertices, copies included


def refine_cut(edge_list, edge_part: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Part [M] int16 of each row of a cut by any method, with single edges moved and, up to `SMALL` rows, borders."""
    edge_part = refine(edge_list, edge_part, shares)
    if len(shares) == 1 or not 0 < len(edge_part) <= SMALL:
        return edge_part
    degrees = endpoint_degrees(edge_list)
    rows, order, vertices = ordered_edges(edge_list, degrees, np.arange(len(degrees)))
    edge_part[order] = refine_borders(rows, edge_part[order], degrees[vertices], shares)
    return edge_part


def refine_borders(rows: EdgeArrays, parts: np.ndarray, degrees: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Part [M] int16 with fewer copies.

    Args: rows: sorted by source; parts: int16 [M]; degrees: [N], see `endpoint_degrees`; shares: [P], `part_shares`.
    Notes: the same for any number of threads; memory: see `BORDER_BYTES` in within.py.
    """
    weights = np.zeros((len(rows.src), 2), dtype=np.float32)
    weights[:, 0] = np.where(rows.src == rows.dst, 1, 2) if rows.two_way else 1
    most_weight = np.stack([arc_limit(rows, shares, ARCS), np.full(len(shares), np.inf)], axis=1)
    most_owned = owned_limit(np.count_nonzero(degrees), shares)

    def flows(found, copies):
        most_held = np.stack([HELD * copies * shares, most_owned], axis=1)
        return cut_pairs(rows, found, Limits(weights, most_weight, most_held))

    def sweeps(found):
        found = move_vertices(rows, found, degrees, shares)
        return refine(rows, found, shares, degrees=degrees, schedule=BETWEEN)

    return in_cycles(parts, flows, sweeps, lambda found: num_copies(rows, found, degrees, len(shares)))


def in_cycles(parts, flows: Callable, sweeps: Callable, count: Callable):
    """The parts with fewest copies that were met.

    Args: flows: flows(parts, their copies) -> (parts, whether to go on); then sweeps(parts) -> parts; count: copies.
    """
    copies = count(parts)
    best, fewest = parts, copies
    for left in reversed(range(CYCLES)):
        parts, worth_while = flows(parts, copies)
        copies = count(parts)
        if copies < fewest:
            best, fewest = parts, copies
        if not (left and worth_while):
            break
        parts = sweeps(parts)
        copies = count(parts)
    return best


def num_copies(rows: EdgeArrays, parts: np.ndarray, degrees: np.ndarray, num_parts: int) -> int:
    """Copies of all vertices in all parts."""
    return int(start_state(rows, parts, num_parts, degrees).rows.sum())
