"""A cut in two steps: first between groups of ranks (the ranks of one machine), then inside each group.

The first step sees only the groups, so the fewest copies cross the slow network between them.

Shapes: M edges, P parts = G groups of P / G.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from distgnn.partition.core.edges import EdgeArrays, Edges, group
from distgnn.partition.moves.cut_state import arc_limit, rebalance, start_state

MOST_ARCS = 1.03


def cut_twice(
    edge_list: Edges, shares: np.ndarray, groups: int, cut: Callable[..., Any]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Part [M] int16 of each edge, and the order [N] of vertices that the first step found (or None).

    Args: shares: [P]; groups: a divisor of P; cut: `cut(edge_list, shares)` gives (part of each edge, order, …).
    Notes: parts that the two steps leave beyond 1.03 times their share give edges away.
    """
    # Group g has the parts g * per_group and following, as consecutive ranks are placed on one machine.
    per_group = len(shares) // groups
    by_group = shares.reshape(groups, per_group)
    first, vertex_order = cut(edge_list, by_group.sum(axis=1))[:2]
    edges, starts = group(first, groups)
    parts = np.empty(len(first), dtype=np.int16)
    for g in range(groups):
        some = edges[starts[g] : starts[g + 1]]
        src, dst = edge_list.src[some], edge_list.dst[some]
        loops = int(np.count_nonzero(src == dst))
        arcs = 2 * len(some) - loops if edge_list.two_way else len(some)
        # Vertices keep their numbers: a group sees isolated ones, which cost nothing here.
        sub = EdgeArrays(src, dst, edge_list.num_nodes, edge_list.two_way, arcs)
        # The shares of a group's parts sum to 1 again: balance is asked for inside the group.
        parts[some] = g * per_group + cut(sub, by_group[g] / by_group[g].sum())[0]
    if len(parts):
        # Each step keeps to its own limit; one after the other they may exceed it.
        state = start_state(edge_list, parts, len(shares))
        rebalance(edge_list, state, arc_limit(edge_list, shares, MOST_ARCS))
        parts = state.edge_part
    return parts, vertex_order


def rows_between_groups(pair_rows: np.ndarray, groups: int) -> int:
    """Of the exchange rows [P, P], those between ranks of different groups."""
    # Plain: rank // (ranks of a group).
    group_of = np.arange(len(pair_rows)) * groups // len(pair_rows)
    return int(pair_rows[group_of[:, None] != group_of[None, :]].sum())
