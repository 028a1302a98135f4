"""Groups of edges and their members, the vertices with an edge in the group: what moves as a whole between parts.

Shapes: K groups, N vertices, M edges, P parts, I incidences (a vertex with an edge in a group).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, own_ranges, run
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import WORD, Edges, group
from distgnn.partition.core.sorted_edges import Empty, in_memory
from distgnn.partition.refinement.replica_table import (
    AHEAD,
    CopyTable,
    add_edge,
    add_parts_of,
    prefetch_copies,
    vertex_ranges,
)

BLOCK_MEMBERS = 1 << 11  # at its own vertices that a thread lists before it counts them
BLOCK_MOVED = 1 << 20
# Groups that are asked at once: at least this number, or a share of all; small ones more, since what a block costs by
# itself is paid once, and they hardly change the loads that the others see.
FEWEST_AT_ONCE, MOST_TURNS = 128, 256
ENOUGH_MEMBERS, MOST_AT_ONCE = 1 << 12, 1 << 10
MOST_MARKED = 8  # keys for each edge up to which they are marked rather than sorted: 40 bytes an edge, as sorting takes
MOST_COUNTED = 2**16 - 1  # a sparse vertex has fewer edges, and a dense one's counts saturate far below

SHARES = 2  # for each thread: whoever is done early takes another one
ALONE = 1 << 10  # members of a block that one thread counts in the time in which another one wakes
APART = 32  # numbers between two rows: threads that add to the same cache line wait for each other


class Groups(NamedTuple):
    """indptr: int64 [K + 1] and members [I], the vertices of each group; sizes: float64 [K], its edges (groups of size
    0 stay where they are); counts: uint16 [I], each member's edges in the group, a self-loop once, at most 65535."""

    indptr: np.ndarray
    members: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray


def without_gaps(keys: np.ndarray) -> tuple[np.ndarray, int]:
    """int32 [M], equal where keys are, in their order and without gaps; and how many there are."""
    last = int(keys.max(initial=0))
    if last >= MOST_MARKED * len(keys):
        values, numbers = np.unique(keys, return_inverse=True)
        return numbers.astype(np.int32), len(values)
    present = np.zeros(last + 1, dtype=bool)
    present[keys] = True
    numbers = np.cumsum(present, dtype=np.int32)  # from 1 on
    return numbers[keys] - np.int32(1), int(numbers[-1])


def groups_of(edge_list: Edges, group_ids: np.ndarray, num_groups: int) -> Groups:
    """The groups of edges with the same id [M]; a vertex with an edge in a group is a member once."""
    edge_ids, starts = group(group_ids, num_groups)
    # Whole groups for each thread, with about equal numbers of edges; room for two members of each edge.
    return collect_groups(edge_list, starts, 2 * starts, own_ranges(starts), in_memory, edge_ids)


def collect_groups(
    edge_list: Edges,
    starts: np.ndarray,
    room: np.ndarray,
    bounds: list[int],
    empty: Empty,
    edge_ids: np.ndarray | None = None,
) -> Groups:
    """Groups of edges that follow one another: group c has those at places starts[c] to starts[c + 1].

    Args: starts: [K + 1]; room: [K + 1], most members of all groups before; bounds: of the groups of each thread;
        edge_ids: [M], the edge at each place; None: edges lie there themselves.
    """
    members, counts = empty("members", room[-1], edge_list.src.dtype), empty("counts", room[-1], np.uint16)
    indptr = np.zeros(len(starts), dtype=np.int64)
    work = edge_list.src, edge_list.dst, edge_ids, starts, room, edge_list.num_nodes, indptr[1:], members, counts
    run(_collect, bounds, *work)
    np.cumsum(indptr, out=indptr)
    # Each thread may have used less than its room: all are moved together, without the gaps.
    pieces = [slice(room[c], room[c] + indptr[d] - indptr[c]) for c, d in itertools.pairwise(bounds)]
    for array in (members, counts):
        _close_gaps(array, pieces)
    return Groups(indptr, members[: indptr[-1]], np.diff(starts).astype(np.float64), counts[: indptr[-1]])


def _close_gaps(array: np.ndarray, pieces: list[slice]) -> None:
    """Move these pieces to the beginning, one after the other."""
    end = 0
    for piece in pieces:
        if piece.start > end:
            # In blocks, because numpy makes a copy of what overlaps.
            for first in range(piece.start, piece.stop, BLOCK_MOVED):
                block = array[first : min(first + BLOCK_MOVED, piece.stop)]
                array[end + first - piece.start :][: len(block)] = block
        end += piece.stop - piece.start


@kernel
def _collect(begin, end, src, dst, edge_ids, starts, room, num_nodes, found, members, counts):
    """Members of the groups from begin to end, without gaps; no other thread writes from room[begin] to room[end]."""
    last_slot = np.full(num_nodes, -1, dtype=np.int64)
    _collect_each(begin, end, src, dst, edge_ids, starts, room[begin], last_slot, found, members, counts)


@inline(counted=False)
def _collect_each(begin, end, src, dst, edge_ids, starts, free, last_slot, found, members, counts):
    last = starts[end] - 1
    for c in range(begin, end):
        first = free
        for i in range(starts[c], starts[c + 1]):
            prefetch(WORD, last_slot, dst[_edge_at(min(i + AHEAD, last), edge_ids)])
            e = _edge_at(i, edge_ids)
            u, v = src[e], dst[e]
            free = _add_member(u, first, free, last_slot, members, counts)
            if u != v:
                free = _add_member(v, first, free, last_slot, members, counts)
        found[c] = free - first


@inline(counted=False)
def _edge_at(place, edge_ids):
    return place if edge_ids is None else edge_ids[place]


@inline(counted=False)
def _add_member(v, first, free, last_slot, members, counts):
    """Count one edge of v in the group whose members begin at `first`; returns the next free slot of `members`.

    last_slot[v]: where v was written last, in this group or one before. Slots only grow, so one below `first` means
    that v is not yet a member: nothing has to be cleared between groups.
    """
    # -1 where v was in no group of this thread yet: below every `first`, so that needs no test of its own.
    slot = last_slot[v]
    if slot < first:
        last_slot[v] = free
        members[free], counts[free] = v, 1
        return free + 1
    counts[slot] += counts[slot] < MOST_COUNTED
    return free


def count_groups(groups: Groups, parts: np.ndarray, table: CopyTable, once: bool = False) -> None:
    """Count the edges of all groups, which are in these parts [K], or each member once for each of its groups."""
    everyone = np.arange(len(groups.sizes), dtype=np.int32)
    run(add_groups, vertex_ranges(table), everyone, groups, parts, table, once)


# As `own_ends`: always write, and move on by the truth of the test, in place of `if low <= v < high`.
@kernel
def add_groups(low, high, chosen, groups, parts, table, once):
    """Count the chosen groups in their parts at the members from low to high: their edges, or each member `once`."""
    own = np.empty((BLOCK_MEMBERS, 3), dtype=np.int32)
    width, found = uint64(high - low), 0
    for i in range(chosen.shape[0]):
        c = chosen[i]
        for j in range(groups.indptr[c], groups.indptr[c + 1]):
            v = np.int64(groups.members[j])
            own[found, 0], own[found, 1], own[found, 2] = v, parts[c], 1 if once else groups.counts[j]
            found += uint64(v - low) < width
            if found == BLOCK_MEMBERS:
                _add_own(own, found, table)
                found = 0
    _add_own(own, found, table)


@inline(counted=False)
def _add_own(own, found, table):
    for i in range(found):
        prefetch_copies(table, own[min(i + AHEAD, found - 1), 0], own[min(i + 2 * AHEAD, found - 1), 0])
        add_edge(table, own[i, 0], own[i, 1], own[i, 2])


def cut_blocks(chosen: np.ndarray, groups: Groups) -> list[int]:
    """Bounds of blocks of the chosen groups [B], each to be asked at once: not too few, nor too large together."""
    bounds, fewest = np.zeros(len(chosen) + 1, dtype=np.int64), max(FEWEST_AT_ONCE, len(chosen) // MOST_TURNS)
    return bounds[: 1 + _cut_blocks(chosen, groups.indptr, fewest, bounds)].tolist()


@kernel(counted=False)
def _cut_blocks(chosen, indptr, fewest, bounds):
    """Write bounds [B + 1], which are 0; returns how many blocks there are."""
    found = members = 0
    for i in range(chosen.shape[0]):
        members += indptr[chosen[i] + 1] - indptr[chosen[i]]
        size = i + 1 - bounds[found]
        full = size >= fewest and (members >= ENOUGH_MEMBERS or size >= MOST_AT_ONCE)
        if full or i + 1 == chosen.shape[0]:
            found += 1
            bounds[found], members = i + 1, 0
    return found


def count_block(chosen: np.ndarray, groups: Groups, part: np.ndarray, table: CopyTable) -> np.ndarray:
    """int32 [B, P]: members of each chosen group [B] that a part has even without the group, see `count_present`.

    A few groups of a block have most of its members, so threads share members and not groups: all groups' members one
    after the other are cut into equal shares, and a group that is cut is counted in two or more.
    """
    starts = np.zeros(len(chosen) + 1, dtype=np.int64)
    np.cumsum(groups.indptr[chosen + 1] - groups.indptr[chosen], out=starts[1:])
    total, threads = int(starts[-1]), get_num_threads()
    shares = SHARES * threads if threads > 1 and total > ALONE else 1
    cuts = np.array([total * share // shares for share in range(shares + 1)])
    present = np.zeros((len(chosen) + shares, table.num_parts + APART), dtype=np.int32)
    run(_count, range(shares + 1), cuts, starts, chosen, groups, part, table, present)
    if shares > 1:
        _join(cuts, starts, present)
    return present[: len(chosen), : table.num_parts]


@kernel(counted=False)
def _count(share, _, cuts, starts, chosen, groups, part, table, present):
    """Count a share of the members; of a group that began in an earlier one into row B + share."""
    begin, end = cuts[share], cuts[share + 1]
    i = np.searchsorted(starts, begin, side="right") - 1
    while begin < end:
        stop = min(end, starts[i + 1])
        row = i if begin == starts[i] else len(chosen) + share
        first = groups.indptr[chosen[i]] + begin - starts[i]
        add_present(first, first + stop - begin, part[chosen[i]], groups, table, present[row, : table.num_parts])
        begin = stop
        i += 1


@kernel(counted=False)
def _join(cuts, starts, present):
    """Add to the rows of groups what later shares have of them."""
    for share in range(1, len(cuts) - 1):
        i = np.searchsorted(starts, cuts[share], side="right") - 1
        for p in range(present.shape[1]):
            present[i, p] += present[len(starts) - 1 + share, p]


@inline(counted=False)
def count_present(c, home, groups, table, num_present):
    """num_present[p] = members of group c that part p has even without the group, which is in `home` (-1: in none).

    Returns: the number of members; so the group needs (members - num_present[p]) copies of its own in part p.
    """
    begin, end = groups.indptr[c], groups.indptr[c + 1]
    num_present[:] = 0
    add_present(begin, end, home, groups, table, num_present)
    return end - begin


@inline(counted=False)
def add_present(begin, end, home, groups, table, num_present):
    """As `count_present`, of the members from begin to end; num_present [P] is added to."""
    for j in range(begin, end):
        ahead, far_ahead = groups.members[min(j + AHEAD, end - 1)], groups.members[min(j + 2 * AHEAD, end - 1)]
        prefetch_copies(table, ahead, far_ahead)
        add_parts_of(table, groups.members[j], home, num_present)
