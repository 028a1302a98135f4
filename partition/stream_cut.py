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

from distgnn.kernels.jit import kernel
from distgnn.partition.copy_table import empty_table
from distgnn.partition.group_moves import Loads
from distgnn.partition.refine import arc_limit, shed, start_state, sweep
from distgnn.partition.reorder import Rows
from distgnn.partition.stream_cluster import cluster_rows
from distgnn.partition.stream_place import place_clusters
from distgnn.partition.stream_sort import SortedRows, number_by_cluster, number_by_degree, renumber_rows, sort_rows
from distgnn.partition.streaming import endpoint_degrees
from distgnn.partition.vertex_cut import part_dtype

CLUSTERS_PER_PART = 32
SCHEDULE = (2.0, 0.3, 0.0)
PLACINGS = 2
PASSES = (*(f"place_{i}" for i in range(PLACINGS)), *(f"refine_{i}" for i in range(len(SCHEDULE))))
BALANCE, BETA = 1.03, 2.0


def cmr_stream(edge_list, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut an edge list in memory, just as `out_of_core` does on disk.

    Args: shares: [P], see `part_shares`.
    Returns: part [M] of each row, and the number [N] of each vertex by cluster.
    Notes: nothing in it is random, and the number of threads makes no difference. Memory: 28 bytes for each row and
        the table of copies.
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
    else:
        work.sweep(SCHEDULE[int(number)], step)


class Assignment:
    """Parts of sorted rows: clusters are placed, then single rows move. Counts are made anew for every pass, so that a
    pass does the same after a stop.

    Args:
        rows: [M]; parts: int16 [M]; written to.
        begins: int64 [K + 1], the clusters' first vertices, under the new numbers.
        degrees: [N], at least the rows of each vertex, under the new numbers.
        two_way: whether a row is two arcs; num_arcs: of all rows; shares: [P].
    """

    def __init__(self, rows: SortedRows, parts, begins, degrees, two_way: bool, num_arcs: int, shares) -> None:
        self.rows = Rows(rows.low, rows.high, len(degrees), two_way, num_arcs)
        self.parts, self.begins, self.degrees, self.shares = parts, begins, degrees, shares

    def place(self, step) -> None:
        """Put every cluster, in order, where it adds least."""
        num_parts = len(self.shares)
        goal = self.rows.num_arcs * self.shares
        if not len(self.parts) or self.parts[0] < 0:
            loads = Loads(np.zeros(num_parts), np.zeros(num_parts), goal, np.zeros(num_parts))
            table = empty_table(self.degrees, num_parts)
        else:
            state = start_state(self.rows, self.parts, num_parts, self.degrees)
            loads, table = Loads(state.arcs, state.rows.astype(np.float64), goal, np.zeros(num_parts)), state.table
        place_clusters(self.rows, self.parts, self.begins, table, loads, self.shares, step)

    def sweep(self, s: float, step) -> None:
        """Visit every row once; a vertex with c rows in a part costs c / (c + s) there."""
        limit = arc_limit(self.rows, self.shares, BALANCE)
        state = start_state(self.rows, self.parts, len(self.shares), self.degrees)
        sweep(self.rows, state, limit, BETA, s, self.shares, step=step)
        if s == SCHEDULE[-1]:
            shed(self.rows, state, limit)
