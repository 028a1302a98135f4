"""Groups of rows, and who is in them: what is moved as a whole between parts.

Shapes: K groups, N vertices, M rows, P parts, I incidences (a vertex with an edge in a group).
Source: ours.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import own_ranges, run
from distgnn.partition.core.edges import group
from distgnn.partition.moves.replica_table import AHEAD, CopyTable, add_copies, ask_for

BLOCK_MEMBERS = 1 << 11  # of which a thread first picks its own vertices
BLOCK_MOVED = 1 << 20
MOST_COUNTED = 2**16 - 1


class Groups(NamedTuple):
    """indptr: int64 [K + 1] and members [I], the vertices of each group; sizes: float64 [K], its rows (groups of size 0
    stay where they are); counts: uint16 [I], how many of them each member has, a self-loop once, at most 65535."""

    indptr: np.ndarray
    members: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray


def groups_of(edge_list, group_ids: np.ndarray, num_groups: int) -> Groups:
    """The groups of rows that bear the same id [M]; a vertex with an edge in a group is in it once."""
    rows, starts = group(group_ids, num_groups)
    members = np.empty(2 * len(group_ids), dtype=edge_list.src.dtype)
    counts = np.empty(len(members), dtype=np.uint16)
    found = np.zeros(num_groups, dtype=np.int64)
    bounds = own_ranges(starts)
    work = edge_list.src, edge_list.dst, rows, starts, edge_list.num_nodes, found, members, counts
    run(_collect, bounds, *work)
    indptr = np.zeros(num_groups + 1, dtype=np.int64)
    np.cumsum(found, out=indptr[1:])
    pieces = [slice(2 * starts[c], 2 * starts[c] + indptr[d] - indptr[c]) for c, d in itertools.pairwise(bounds)]
    close_up(pieces, members, counts)
    return Groups(indptr, members[: indptr[-1]], np.diff(starts).astype(np.float64), counts[: indptr[-1]])


def close_up(pieces: list[slice], *arrays: np.ndarray) -> None:
    """Move these pieces of each array [n] to its beginning, one after the other."""
    for array in arrays:
        end = 0
        for piece in pieces:
            if piece.start > end:
                for first in range(piece.start, piece.stop, BLOCK_MOVED):  # numpy copies what overlaps
                    block = array[first : min(first + BLOCK_MOVED, piece.stop)]
                    array[end + first - piece.start :][: len(block)] = block
            end += piece.stop - piece.start


@kernel
def _collect(begin, end, src, dst, rows, starts, num_nodes, found, members, counts):
    """Members of the groups from begin to end, without gaps from twice the rows before them on."""
    seat = np.full(num_nodes, -1, dtype=np.int64)
    _collect_each(begin, end, src, dst, rows, starts, seat, found, members, counts)


@inline(_nrt=False)
def _collect_each(begin, end, src, dst, rows, starts, seat, found, members, counts):
    place = 2 * starts[begin]
    for c in range(begin, end):
        first = place
        for i in range(starts[c], starts[c + 1]):
            u, v = src[rows[i]], dst[rows[i]]
            place = sit(u, first, place, seat, members, counts)
            if u != v:
                place = sit(v, first, place, seat, members, counts)
        found[c] = place - first


@inline(_nrt=False)
def sit(v, first, place, seat, members, counts):
    """One row of v in the group whose members begin at `first`; returns the next place for a member."""
    mine = seat[v]
    if mine < first:
        seat[v] = place
        members[place], counts[place] = v, 1
        return place + 1
    counts[mine] += counts[mine] < MOST_COUNTED
    return place


def add_members(groups: Groups, parts: np.ndarray, degrees: np.ndarray, table: CopyTable) -> None:
    """Count the rows of all groups, which are in these parts [K]; degrees: [N]. Each thread at its own vertices."""
    indptr = np.zeros(len(degrees) + 1, dtype=np.int64)
    np.cumsum(degrees, out=indptr[1:])
    run(_add_members, own_ranges(indptr), groups, parts, table)


@kernel
def _add_members(low, high, groups, parts, table):
    """Count at the vertices from low to high, which are first picked out of each block: whose a member is cannot be
    guessed."""
    own = np.empty((BLOCK_MEMBERS, 3), dtype=np.int32)
    group = 0
    for begin in range(0, groups.members.shape[0], BLOCK_MEMBERS):
        end = min(begin + BLOCK_MEMBERS, groups.members.shape[0])
        group, found = _pick(low, high, begin, end, group, groups, parts, own)
        _add_own(own, found, table)


@inline(_nrt=False)
def _pick(low, high, begin, end, group, groups, parts, own):
    width, found = uint64(high - low), 0
    for i in range(begin, end):
        while i >= groups.indptr[group + 1]:
            group += 1
        v = np.int64(groups.members[i])
        own[found, 0], own[found, 1], own[found, 2] = v, parts[group], groups.counts[i]
        found += uint64(v - low) < width
    return group, found


@inline(_nrt=False)
def _add_own(own, found, table):
    for i in range(found):
        ask_for(table, own[min(i + AHEAD, found - 1), 0], own[min(i + 2 * AHEAD, found - 1), 0])
        add_copies(table, own[i, 0], own[i, 1], own[i, 2])
