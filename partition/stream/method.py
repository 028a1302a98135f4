"""`cmr-stream`: clusters from sorted edges, merged and refined in sequential passes; nothing as large as the edges need
be in memory.

Clusters, largest first, go whole to the part where they add least (new copies, and a steep price on arcs and copies
over the part's share); they are ranges of sorted edges, merged as merge.py does. Then every edge may move to a part
where one of its ends is: the sweeps of `refine`, fewer of them.

Shapes: N vertices, M edges, K clusters, P parts, W words of a part mask.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, even_chunks, get_num_threads, run
from distgnn.partition.core.edges import EdgeArrays, Edges, endpoint_degrees
from distgnn.partition.core.part_masks import empty_mask, mark_arcs
from distgnn.partition.core.shares import MOST_ARCS
from distgnn.partition.core.sorted_edges import (
    Empty,
    SortedEdges,
    Step,
    in_memory,
    no_step,
    number_by_cluster,
    number_by_degree,
    renumber_edges,
    sort_edges,
)
from distgnn.partition.core.vertex_cut import part_dtype
from distgnn.partition.moves.cut_state import State, arc_limit, rebalance, start_state
from distgnn.partition.moves.edge_moves import BETA, sweep
from distgnn.partition.moves.group_moves import EXTRA_PRICE
from distgnn.partition.moves.groups import Groups, collect_groups
from distgnn.partition.moves.merge import MergeOptions, merge_groups
from distgnn.partition.moves.replica_table import count_copies, restore_saturated, saturated_counts
from distgnn.partition.stream.cluster import cluster_by_edges

CLUSTERS_PER_PART = 32
SCHEDULE = (2.0, 0.3, 0.0)
PASSES = ("place", *(f"refine_{i}" for i in range(len(SCHEDULE))))

Masks = tuple[np.ndarray, np.ndarray]

OPTIONS = MergeOptions(sweeps=8, first_guess=1.0, extra_price=EXTRA_PRICE)
MOST_THREADS = 2  # each has a last slot of 8 bytes for every vertex


def cluster_groups(edges: Edges, begins: np.ndarray, empty: Empty) -> Groups:
    """The edges of each cluster, which are those with their source in it, as groups; begins: [K + 1]."""
    # In the dtype of src, which searchsorted would convert (and copy) otherwise.
    starts = np.searchsorted(edges.src, begins.astype(edges.src.dtype))
    size = len(edges.src)
    threads = min(get_num_threads(), MOST_THREADS) if size > FEW_EDGES else 1
    inner = np.searchsorted(starts, [size * i // threads for i in range(1, threads)])
    # A cluster has at most its vertices, which are the sources, and one target for each of its edges.
    return collect_groups(edges, starts, starts + begins, [0, *inner.tolist(), len(begins) - 1], empty)


def cmr_stream(edge_list: Edges, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, Masks | None]:
    """Cut an edge list in memory, just as `partition_on_disk` does on disk.

    Args: shares: [P], see `part_shares`.
    Returns: part [M] of each edge; the number [N] of each vertex by cluster; masks [N, W] of the parts where arcs leave
        from and arrive at each vertex (one and the same where edges are two-way), None where there is nothing to cut.
    Notes: nothing in it is random, and the number of threads makes no difference. Memory: 28 bytes for each edge and
        the table of copies.
    """
    size, num_parts = len(edge_list.src), len(shares)
    degrees = endpoint_degrees(edge_list)
    edge_part: np.ndarray = np.zeros(size, dtype=part_dtype(num_parts))
    first = number_by_degree(degrees)
    edges = sort_edges(edge_list, degrees, first, in_memory, no_step)
    cap = 2 * size / (CLUSTERS_PER_PART * num_parts)
    numbering = number_by_cluster(*cluster_by_edges(edges, -np.sort(-degrees), cap, no_step))
    number = numbering.number[first]
    if num_parts == 1 or size == 0:
        return edge_part, number, None
    edges = renumber_edges(edges, numbering.number, in_memory, no_step)
    parts = np.full(size, -1, dtype=edge_part.dtype)
    renumbered = np.empty_like(degrees)
    renumbered[number] = degrees
    two_way, num_arcs = edge_list.two_way, edge_list.num_arcs
    work = Assignment(edges, parts, renumbered, two_way, num_arcs, shares)
    work.place(numbering.begins, in_memory, no_step)
    for sweep_number in range(len(SCHEDULE)):
        work.refine(sweep_number, no_step)
    edge_part[edges.tag >> 1] = parts
    # In the order of the sorted edges: neighbours there are neighbours in the masks, too.
    leaves, arrives = edges.low, edges.high
    sources = targets = empty_mask(len(number), num_parts)
    if not two_way:
        targets = np.zeros_like(sources)
        to_low = (edges.tag & 1).astype(bool)
        leaves, arrives = np.where(to_low, edges.high, edges.low), np.where(to_low, edges.low, edges.high)
    mark_arcs(leaves, arrives, parts, False, sources, targets)
    sources = sources[number]
    return edge_part, number, (sources, sources if two_way else targets[number])


class Assignment:
    """Parts int16 [M] of sorted edges: clusters are placed, then single edges move; degrees [N] or more."""

    def __init__(
        self,
        edges: SortedEdges,
        parts: np.ndarray,
        degrees: np.ndarray,
        two_way: bool,
        num_arcs: int,
        shares: np.ndarray,
    ) -> None:
        self.edges: EdgeArrays = EdgeArrays(edges.low, edges.high, len(degrees), two_way, num_arcs)
        self.parts = parts
        self.degrees = degrees
        self.shares = shares
        self.state: State | None = None

    def place(self, begins: np.ndarray, empty: Empty, step: Step) -> None:
        """Put every cluster where it adds least; begins: [K + 1], the first vertex of each."""
        groups = cluster_groups(self.edges, begins, empty)
        step(1, 4)
        of_cluster, table = merge_groups(groups, self.degrees, self.shares, len(self.parts), OPTIONS)
        del groups
        run(_spread, even_chunks(len(self.parts), 2), self.edges.src, begins, of_cluster, self.parts)
        self.state = start_state(self.edges, self.parts, len(self.shares), table=table)
        step(4, 4)

    def refine(self, number: int, step: Step, saturated: np.ndarray | Sequence[int] = ()) -> None:
        """Sweep `number` of SCHEDULE; saturated: `saturated_counts` after the sweep before, if in another process."""
        state = self.state or self._counted_anew(saturated)
        state = self.state = state._replace(edge_part=self.parts)
        limit = arc_limit(self.edges, self.shares, MOST_ARCS)
        sweep(self.edges, state, limit, BETA, SCHEDULE[number], self.shares, step=step)
        if number == len(SCHEDULE) - 1:
            rebalance(self.edges, state, limit)

    def _counted_anew(self, saturated: np.ndarray | Sequence[int]) -> State:
        state = start_state(self.edges, self.parts, len(self.shares), self.degrees)
        restore_saturated(state.table, saturated)
        # A count that is saturated again can be a copy more than there are edges for: copies are counted after that.
        state.num_copies[:] = 0
        count_copies(state.table, state.num_copies)
        return state

    def saturated_counts(self) -> np.ndarray:
        """What the table knows and counting the edges anew would not: see `saturated_counts`."""
        if self.state is None:
            raise RuntimeError("no pass has been made yet: call place or refine first")
        return saturated_counts(self.state.table)


@kernel(counted=False)
def _spread(first, last, low, begins, of_cluster, parts):
    """parts[e] = part of the cluster of the edge's lower end; both ascend."""
    if first == last:
        return  # of no edges at all
    c = np.searchsorted(begins, low[first], side="right") - 1
    for e in range(first, last):
        while low[e] >= begins[c + 1]:
            c += 1
        parts[e] = of_cluster[c]
