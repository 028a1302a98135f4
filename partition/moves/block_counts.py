"""What parts have of the members of a block of groups, counted and written down by all threads.

A few groups of a block have most of its members, so threads share members and not groups: those of all groups one after
the other are cut into equal shares, and a group that is cut is counted in two or more.

Shapes: K groups, P parts, B groups of a block.
Source: ours.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import get_num_threads, run
from distgnn.partition.moves.groups import Groups
from distgnn.partition.moves.replica_table import AHEAD, CopyTable, add_edge, add_parts_of, prefetch_copies

SHARES = 2  # for each thread: whoever is done early takes another one
ALONE = 1 << 10  # members of a block that one thread counts in the time in which another one wakes
APART = 32  # numbers between two rows: threads that add to the same cache line wait for each other
PICKED = 1 << 11  # members of which a thread first picks its own


def count_block(chosen: np.ndarray, groups: Groups, part: np.ndarray, table: CopyTable) -> np.ndarray:
    """int32 [B, P]: members of each chosen group that a part has even without the group, see `count_present`.

    Args: chosen: int32 [B]; part: int16 [K], -1: in none; table: in how many groups of each part a vertex is.
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


@kernel(_nrt=False)
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


@kernel(_nrt=False)
def _join(cuts, starts, present):
    """Add to the rows of groups what later shares have of them."""
    for share in range(1, len(cuts) - 1):
        i = np.searchsorted(starts, cuts[share], side="right") - 1
        for p in range(present.shape[1]):
            present[i, p] += present[len(starts) - 1 + share, p]


@inline(_nrt=False)
def count_present(c, home, groups, table, num_present):
    """num_present[p] = members of group c that part p has even without the group, which is in `home` (-1: in none).

    Returns: the number of members; so the group needs (members - num_present[p]) copies of its own in part p.
    """
    begin, end = groups.indptr[c], groups.indptr[c + 1]
    num_present[:] = 0
    add_present(begin, end, home, groups, table, num_present)
    return end - begin


@inline(_nrt=False)
def add_present(begin, end, home, groups, table, num_present):
    """As `count_present`, of the members from begin to end; num_present [P] is added to."""
    for j in range(begin, end):
        ahead, far_ahead = groups.members[min(j + AHEAD, end - 1)], groups.members[min(j + 2 * AHEAD, end - 1)]
        prefetch_copies(table, ahead, far_ahead)
        add_parts_of(table, groups.members[j], home, num_present)


@kernel
def add_block(low, high, chosen, groups, part, table):
    """Count the chosen groups in their parts, each once at every member that is from low to high."""
    own = np.empty(PICKED, dtype=np.int32)
    for i in range(len(chosen)):
        c = chosen[i]
        for begin in range(groups.indptr[c], groups.indptr[c + 1], PICKED):
            _add_own(low, high, begin, min(begin + PICKED, groups.indptr[c + 1]), part[c], groups, table, own)


# As `own_ends`: always write, and move on by the truth of the test, in place of `if low <= v < high`.
@inline(_nrt=False)
def _add_own(low, high, begin, end, p, groups, table, own):
    width, found = uint64(high - low), 0
    for j in range(begin, end):
        own[found] = groups.members[j]
        found += uint64(np.int64(groups.members[j]) - low) < width
    for j in range(found):
        prefetch_copies(table, own[min(j + AHEAD, found - 1)], own[min(j + 2 * AHEAD, found - 1)])
        add_edge(table, own[j], p)
