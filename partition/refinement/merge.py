"""Merge clusters of edges into parts, balancing arcs and copies at once.

Clusters go, largest first, where they add least: new copies, plus a price on the part's arcs and copies over its
share. Then single clusters move while that pays.

Shapes: K clusters, N vertices, M edges, P parts.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import run
from distgnn.partition.refinement.group_loads import change_load, no_row_loads, start_loads
from distgnn.partition.refinement.group_moves import Placement, cheapest_part, move_groups
from distgnn.partition.refinement.groups import Groups, add_groups, count_block, count_groups, count_present
from distgnn.partition.refinement.replica_table import CopyTable, add_edge, empty_table, vertex_ranges

IN_TURN = 10**6  # incidences up to which clusters are placed and moved one after the other; beyond, in blocks
BLOCKS, MOST_GROUPS = 256, 32  # a block of groups is so small a fraction of those before it
LARGE = 256  # edges of a group; smaller ones are placed one after the other: they cost little but their prices
SWEEPS = 32  # at most, in graphs of few incidences
FIRST_GUESS = 1.2  # copies per vertex, before any are known
EXTRA_PRICE = 1.0  # of imbalance, of `move_groups`, when groups have their first parts


def merge_groups(
    groups: Groups, degrees: np.ndarray, shares: np.ndarray, num_edges: int
) -> tuple[np.ndarray, CopyTable]:
    """Part [K] int16 of each group of edges, and the table of the cut."""
    num_parts = len(shares)
    # What parts are meant to have in copies, until `move_groups` can count them: a guess for each vertex with an edge.
    guess = FIRST_GUESS * np.count_nonzero(degrees) * shares
    no_loads = np.zeros(num_parts), np.zeros(num_parts)
    loads = start_loads(*no_loads, num_edges * shares, guess)
    parts = np.full(len(groups.sizes), -1, dtype=np.int16)
    placement = Placement(parts, empty_table(degrees, num_parts), loads, no_row_loads(num_parts))
    largest_first = np.argsort(-groups.sizes, kind="stable").astype(np.int32)
    if len(groups.members) <= IN_TURN:
        large, sweeps, how = 0, SWEEPS, "all in turn"
    else:
        large, sweeps, how = int(np.count_nonzero(groups.sizes >= LARGE)), 1, "in blocks"
    _place_in_blocks(largest_first[:large], groups, placement)
    _place_in_turn(largest_first[large:], groups, placement, np.empty(num_parts, dtype=np.int32))
    move_groups(groups, placement, shares, degrees, sweeps, how, EXTRA_PRICE)
    # The table so far counts groups; what refinement needs counts edges. There is memory for one of them at a time.
    del placement
    table = empty_table(degrees, num_parts)
    count_groups(groups, parts, table)
    return parts, table


def _place_in_blocks(order: np.ndarray, groups: Groups, placement: Placement) -> None:
    """Put each group, in order, where it costs least, as if no member were in another group of the same block."""
    part, table = placement.part, placement.table
    own, first = vertex_ranges(table), 0
    while first < len(order):
        block = order[first : first + min(first // BLOCKS + 1, MOST_GROUPS)]
        _choose(block, groups, placement, count_block(block, groups, part, table))
        run(add_groups, own, block, groups, part, table, True)
        first += len(block)


@kernel(counted=False)
def _choose(block, groups, placement, present):
    for i in range(block.shape[0]):
        _put(block[i], groups, placement, present[i])


@kernel(counted=False)
def _place_in_turn(order, groups, placement, num_present):
    """Put each group, in order, where it costs least."""
    for i in range(order.shape[0]):
        c = order[i]
        count_present(c, -1, groups, placement.table, num_present)
        _put(c, groups, placement, num_present)
        # One count for each group, not for each edge: a member's copy vanishes when its last group leaves.
        for j in range(groups.indptr[c], groups.indptr[c + 1]):
            add_edge(placement.table, groups.members[j], placement.part[c], 1)


@inline(counted=False)
def _put(c, groups, placement, num_present):
    """Group c to the part where it costs least; it is not yet counted at its members."""
    best = cheapest_part(c, groups, placement, num_present)
    size = groups.indptr[c + 1] - groups.indptr[c]
    change_load(best, 1, groups.sizes[c], size - num_present[best], placement.loads)
    placement.part[c] = best
