"""`cmr-stream`: clusters from sorted rows, merged and refined in sequential passes; nothing as large as the rows need
be in memory.

Clusters, largest first, go whole to the part where they add least (new copies, and a steep price on rows and copies
over the part's share). Then every row may move to a part where one of its ends is: the sweeps of `refine`, fewer of
them.

Shapes: N vertices, M rows, K clusters, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import even_chunks, own_ranges, run
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import EdgeArrays, endpoint_degrees
from distgnn.partition.core.vertex_cut import part_dtype
from distgnn.partition.moves.edge_moves import arc_limit, count_rows, shed, start_state, sweep
from distgnn.partition.moves.replica_table import fill_counts, full_counts
from distgnn.partition.sorting.bucket_sort import (
    SortedEdges,
    gather_edges,
    in_memory,
    no_step,
    sort_buffer,
    sort_edges,
)
from distgnn.partition.sorting.numbering import number_by_cluster, number_by_degree
from distgnn.partition.stream.cluster import cluster_rows
from distgnn.partition.stream.place import place_clusters

CLUSTERS_PER_PART = 32
SCHEDULE = (2.0, 0.3, 0.0)
PASSES = ("place", *(f"refine_{i}" for i in range(len(SCHEDULE))))
BALANCE, BETA = 1.03, 2.0
AHEAD = 32  # rows between asking for the mask of an end and marking it
WORD = Tile(lanes=1, offsets=(0,), heads=(0,))


def cmr_stream(edge_list, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple | None]:
    """Cut an edge list in memory, just as `out_of_core` does on disk.

    Args: shares: [P], see `part_shares`.
    Returns: part [M] of each row; the number [N] of each vertex by cluster; masks [N, W] of the parts where arcs leave
        from and arrive at each vertex (one and the same where rows are two-way), None where there is nothing to cut.
    Notes: nothing in it is random, and the number of threads makes no difference. Memory: 28 bytes for each row and
        the table of copies.
    """
    size, num_parts = len(edge_list.src), len(shares)
    degrees = endpoint_degrees(edge_list)
    edge_part = np.zeros(size, dtype=part_dtype(num_parts))
    first = number_by_degree(degrees)
    room = sort_buffer(size)
    rows = sort_edges(edge_list, degrees, first, in_memory, no_step, room)
    cap = 2 * size / (CLUSTERS_PER_PART * num_parts)
    numbering = number_by_cluster(*cluster_rows(rows, -np.sort(-degrees), cap, no_step))
    number = numbering.number[first]
    if num_parts == 1 or size == 0:
        return edge_part, number, None
    rows = gather_edges(rows, numbering.number, room)
    parts = np.full(size, -1, dtype=edge_part.dtype)
    renumbered = np.empty_like(degrees)
    renumbered[number] = degrees
    two_way, num_arcs = edge_list.two_way, edge_list.num_arcs
    work = Assignment(rows, parts, renumbered, two_way, num_arcs, shares)
    work.place(numbering.begins, in_memory, no_step)
    for sweep_number in range(len(SCHEDULE)):
        work.refine(sweep_number, no_step)
    run(_to_rows, even_chunks(size, 4), rows.tag, parts, edge_part)
    return edge_part, number, work.masks(rows.tag, number)


@kernel(_nrt=False)
def _to_rows(begin, end, tag, parts, edge_part):
    for i in range(begin, end):
        edge_part[np.int64(tag[i]) >> 1] = parts[i]


class Assignment:
    """Parts of sorted rows: clusters are placed, then single rows move.

    Args:
        rows: [M]; parts: int16 [M]; written to.
        degrees: [N], at least the rows of each vertex, under the new numbers.
        two_way: whether a row is two arcs; num_arcs: of all rows; shares: [P].
    """

    def __init__(self, rows: SortedEdges, parts, degrees, two_way: bool, num_arcs: int, shares) -> None:
        self.rows = EdgeArrays(rows.low, rows.high, len(degrees), two_way, num_arcs)
        self.parts, self.degrees, self.shares = parts, degrees, shares
        self.state = None

    def place(self, begins, empty, step) -> None:
        """Put every cluster where it adds least; begins, empty, step: see `place_clusters`."""
        of_cluster, table = place_clusters(self.rows, begins, self.degrees, self.shares, empty, step)
        _spread(self.rows.src, begins, of_cluster, self.parts)
        self.state = start_state(self.rows, self.parts, len(self.shares), table=table)
        step(4, 4)

    def refine(self, number: int, step, full=()) -> None:
        """Sweep `number` of SCHEDULE: visit every row; a vertex with c rows in a part costs c / (c + s) there.

        Args: full: int64, what `full_counts` said after the sweep before, if that was in another process.
        """
        if self.state is None:
            self.state = start_state(self.rows, self.parts, len(self.shares), self.degrees)
            fill_counts(self.state.table, full)
            self.state.rows[:] = 0
            count_rows(self.state.table, self.state.rows)
        limit = arc_limit(self.rows, self.shares, BALANCE)
        state = self.state = self.state._replace(edge_part=self.parts)
        sweep(self.rows, state, limit, BETA, SCHEDULE[number], self.shares, step=step)
        if number == len(SCHEDULE) - 1:
            shed(self.rows, state, limit)

    def full_counts(self) -> np.ndarray:
        """What the table knows and a count of the rows would not: see `full_counts`."""
        return full_counts(self.state.table)

    def masks(self, tag: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `cmr_stream`. Args: tag: [M], of the rows; number: [N], the new number of each vertex."""
        roles = 1 if self.rows.two_way else 2
        indptr = np.zeros(len(self.degrees) + 1, dtype=np.int64)
        np.cumsum(self.degrees, out=indptr[1:])
        marked = np.zeros((len(self.degrees), roles, (len(self.shares) + 63) // 64), dtype=np.uint64)
        run(_mark, own_ranges(indptr), self.rows.src, self.rows.dst, tag, self.parts, marked)
        sources = marked[number, 0]
        return sources, sources if self.rows.two_way else marked[number, 1]


@kernel(_nrt=False)
def _mark(begin, end, low, high, tag, parts, marked):
    """Parts of the vertices from begin to end: marked[v, 0] where their arcs leave, marked[v, 1] (or 0, if there is no
    1) where they arrive. No branch on whose vertex an end is, as in bits.py.
    """
    turns = 15 if end - begin > 15 else 0
    last = low.shape[0] - 1
    width, arrive = uint64(end - begin), marked.shape[1] - 1
    stride = marked.shape[1] * marked.shape[2]
    for e in range(last + 1):
        prefetch(WORD, marked, stride * np.int64(high[min(e + AHEAD, last)]))
        u, v, p = np.int64(low[e]), np.int64(high[e]), np.int64(parts[e])
        back = np.int64(tag[e]) & arrive  # the target is the end of lower degree
        mine, yours = uint64(u - begin) < width, uint64(v - begin) < width
        idle = begin + (e & turns)
        marked[u if mine else idle, back, p >> 6] |= uint64(mine) << uint64(p & 63)
        marked[v if yours else idle, arrive - back, p >> 6] |= uint64(yours) << uint64(p & 63)


@kernel(_nrt=False)
def _spread(low, begins, of_cluster, parts):
    c = 0
    for e in range(low.shape[0]):
        while low[e] >= begins[c + 1]:
            c += 1
        parts[e] = of_cluster[c]
