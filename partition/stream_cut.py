"""`cmr-stream`: clusters from sorted rows, merged and refined in sequential passes; nothing as large as the rows need
be in memory.

Clusters, largest first, go whole to the part where they add least (new copies, and a steep price on rows and copies
over the part's share). Then every row may move to a part where one of its ends is: as in `refine`, but one after the
other, in the order of the sorted rows.

Shapes: N vertices, M rows, K clusters, P parts.
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.jit import kernel
from distgnn.partition.count_table import CountTable, empty_table, fill, set_sizes
from distgnn.partition.stream_cluster import cluster_rows
from distgnn.partition.stream_place import place_clusters
from distgnn.partition.stream_refine import marginals, shed_rows, sweep_rows
from distgnn.partition.stream_sort import SortedRows, number_by_cluster, number_by_degree, renumber_rows, sort_rows
from distgnn.partition.streaming import endpoint_degrees
from distgnn.partition.vertex_cut import part_dtype

CLUSTERS_PER_PART = 32
PLACINGS = 1
SCHEDULE = (2.0, 0.3, 0.0)
PASSES = tuple(f"place_{i}" for i in range(PLACINGS)) + tuple(f"refine_{i}" for i in range(len(SCHEDULE)))
BALANCE = 1.03


def cmr_stream(edge_list, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut an edge list in memory, just as `out_of_core` does on disk.

    Args: shares: [P], see `part_shares`.
    Returns: part [M] of each row, and the number [N] of each vertex by cluster.
    Notes: nothing in it is random; one thread does all. Memory: 28 bytes for each row and what `Assignment` needs.
    """

    def step(done, total):
        pass

    def in_memory(name, length, dtype):
        return np.empty(length, dtype)

    size, num_parts = len(edge_list.src), len(shares)
    degrees = endpoint_degrees(edge_list)
    edge_part = np.zeros(size, dtype=part_dtype(num_parts))
    first = number_by_degree(degrees)
    rows = sort_rows(edge_list, degrees, first, in_memory, step)
    cap = 2 * size / (CLUSTERS_PER_PART * num_parts)
    numbering = number_by_cluster(*cluster_rows(rows, -np.sort(-degrees), cap, step))
    number = numbering.number[first]
    if num_parts == 1 or size == 0:
        return edge_part, number
    rows = renumber_rows(rows, numbering.number, in_memory, step)
    parts = np.full(size, -1, dtype=edge_part.dtype)
    renumbered = np.empty_like(degrees)
    renumbered[number] = degrees
    two_way, num_arcs = edge_list.two_way, edge_list.num_arcs
    work = Assignment(rows, parts, numbering.begins, renumbered, two_way, num_arcs, shares)
    for name in PASSES:
        run_pass(work, name, step)
    _to_rows(rows.tag, parts, edge_part)
    return edge_part, number


@kernel
def _to_rows(tag, parts, edge_part):
    for i in range(tag.shape[0]):
        edge_part[np.int64(tag[i]) >> 1] = parts[i]


def run_pass(work: Assignment, name: str, step) -> None:
    """One of `PASSES`."""
    kind, number = name.split("_")
    if kind == "place":
        work.place(step)
        return
    work.sweep(SCHEDULE[int(number)], step)
    if name == PASSES[-1]:
        work.shed()


class Assignment:
    """Parts of sorted rows, with counts and loads: clusters are placed and moved, then single rows.

    Args:
        rows: [M]; parts: integers [M], -1 for none yet; written to.
        begins: int64 [K + 1], the clusters' first vertices, under the new numbers.
        degrees: [N], at least the rows of each vertex, under the new numbers.
        two_way: whether a row is two arcs; num_arcs: of all rows; shares: [P].
    """

    def __init__(self, rows: SortedRows, parts, begins, degrees, two_way: bool, num_arcs: int, shares) -> None:
        self.rows, self.parts, self.begins, self.shares = rows, parts, begins, shares
        num_parts = len(shares)
        self.num_vertices = int(np.count_nonzero(degrees))
        self.table: CountTable = empty_table(degrees, num_parts)
        self.weight = 2.0 if two_way else 1.0
        self.arcs = np.zeros(num_parts)
        self.goal = num_arcs * shares
        self.limit = np.maximum(BALANCE * self.goal, np.ceil(self.goal / 2) * 2)
        for begin, end in _pieces(len(parts)):
            fill(rows.low[begin:end], rows.high[begin:end], parts[begin:end], self.weight, self.table, self.arcs)
        self.copies = np.zeros(num_parts, dtype=np.int64)
        set_sizes(self.table.head, self.copies)

    def place(self, step) -> int:
        """Put every cluster, in order, where it adds least; returns how many of them moved."""
        stamp = np.zeros(len(self.table.head), dtype=np.int32)
        cursor = np.zeros(3, dtype=np.int64)  # next row, its cluster, clusters moved
        loads = self.arcs, self.copies, self.goal, self.shares, self.num_vertices
        while cursor[0] < len(self.parts):
            place_clusters(
                self.rows.low, self.rows.high, self.parts, self.begins, self.weight, self.table, *loads, stamp, cursor
            )
            step(int(cursor[0]), len(self.parts))
        return int(cursor[2])

    def sweep(self, s: float, step) -> int:
        """Visit every row once; a vertex with c rows in a part costs c / (c + s) there. Returns the moves made."""
        marginal, moves = marginals(s), 0
        for begin, end in _pieces(len(self.parts)):
            piece = self.rows.low[begin:end], self.rows.high[begin:end], self.parts[begin:end]
            loads = self.arcs, self.copies, self.shares, self.limit
            moves += sweep_rows(*piece, self.table, *loads, self.weight, marginal)[0]
            step(end, len(self.parts))
        return moves

    def shed(self) -> None:
        """Take rows out of parts beyond their limit, where that makes fewest new copies."""
        for new_copies in range(3):
            for begin, end in _pieces(len(self.parts)):
                if (self.arcs <= self.limit).all():
                    return
                piece = self.rows.low[begin:end], self.rows.high[begin:end], self.parts[begin:end]
                shed_rows(*piece, self.table, self.arcs, self.copies, self.limit, self.weight, new_copies)


def _pieces(size: int) -> list[tuple[int, int]]:
    step = 1 << 23
    return [(begin, min(begin + step, size)) for begin in range(0, size, step)]
