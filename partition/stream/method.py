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
from numba import uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, even_chunks, get_num_threads, own_ranges, run
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import WORD, EdgeArrays, Edges, endpoint_degrees
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
from distgnn.partition.moves.edge_moves import sweep
from distgnn.partition.moves.group_moves import EXTRA_PRICE
from distgnn.partition.moves.groups import Groups, add_member, close_gaps
from distgnn.partition.moves.merge import MergeOptions, merge_groups
from distgnn.partition.moves.replica_table import CopyTable, count_copies, restore_saturated, saturated_counts
from distgnn.partition.stream.cluster import cluster_by_edges

CLUSTERS_PER_PART = 32
SCHEDULE = (2.0, 0.3, 0.0)
PASSES = ("place", *(f"refine_{i}" for i in range(len(SCHEDULE))))
BALANCE, BETA = 1.03, 2.0
SPARE_VERTICES = 16  # over which writes that mark nothing are spread

Masks = tuple[np.ndarray, np.ndarray]

AHEAD = 32  # edges between asking for a vertex's last slot, or mask, and looking at it
OPTIONS = MergeOptions(sweeps=8, first_guess=1.0, extra_price=EXTRA_PRICE)
MOST_THREADS = 2  # each has a last slot of 8 bytes for every vertex


def place_clusters(
    edges: Edges, begins: np.ndarray, degrees: np.ndarray, shares: np.ndarray, empty: Empty, step: Step
) -> tuple[np.ndarray, CopyTable]:
    """Part int16 [K] of each cluster, and the table of the cut."""
    groups = cluster_groups(edges, begins, empty)
    step(1, 4)
    return merge_groups(groups, degrees, shares, len(edges.src), OPTIONS)


def cluster_groups(edges: Edges, begins: np.ndarray, empty: Empty) -> Groups:
    """The edges of each cluster, which are those with their source in it, as groups; see `place_clusters`."""
    size, num_clusters = len(edges.src), len(begins) - 1
    threads = min(get_num_threads(), MOST_THREADS) if size > FEW_EDGES else 1
    # Each thread takes whole clusters: the first edge of its even share says where it begins.
    firsts = edges.src[[size * i // threads for i in range(1, threads)]]
    clusters = [0, *(np.searchsorted(begins, firsts, side="right") - 1).tolist(), num_clusters]
    # In the dtype of src, which searchsorted would convert (and copy) otherwise.
    first_edges = np.searchsorted(edges.src, begins[clusters].astype(edges.src.dtype)).tolist()
    room = size + edges.num_nodes
    members, counts = empty("members", room, np.int32), empty("counts", room, np.uint16)
    found, sizes = np.zeros(num_clusters + 1, dtype=np.int64), np.zeros(num_clusters)
    work = edges.src, edges.dst, begins, found[1:], sizes, members, counts
    run(_collect, range(threads + 1), np.array(clusters), np.array(first_edges), edges.num_nodes, *work)
    indptr = np.cumsum(found, out=found)
    pieces = []
    for c, d, edge in zip(clusters[:-1], clusters[1:], first_edges[:-1], strict=True):
        first = edge + int(begins[c])
        pieces.append(slice(first, first + int(indptr[d] - indptr[c])))
    close_gaps(pieces, members, counts)
    return Groups(indptr, members[: indptr[-1]], sizes, counts[: indptr[-1]])


@kernel
def _collect(share, _, clusters, first_edges, num_nodes, low, high, begins, found, sizes, members, counts):
    """Members of one thread's share of the clusters, without gaps.

    They begin at the number of edges and vertices before the share: a cluster has at most its vertices, which are the
    sources, and one target for each of its edges. So no thread comes into the places of the next one.
    """
    last_slot = np.full(num_nodes, -1, dtype=np.int64)
    begin, end = first_edges[share], first_edges[share + 1]
    free = begin + begins[clusters[share]]
    _collect_each(begin, end, clusters[share], free, last_slot, low, high, begins, found, sizes, members, counts)


# Plain: for each edge, c = the cluster of its source; add both ends to the members of c. Sources ascend, so c only
# rises, and what a cluster has is written when the first edge of a later one comes.
@inline(counted=False)
def _collect_each(begin, end, c, free, last_slot, low, high, begins, found, sizes, members, counts):
    first, first_edge = free, begin
    for e in range(begin, end):
        u, v = low[e], high[e]
        prefetch(WORD, last_slot, high[min(e + AHEAD, end - 1)])
        if u >= begins[c + 1]:
            found[c], sizes[c] = free - first, e - first_edge
            first, first_edge = free, e
            while u >= begins[c + 1]:
                c += 1
        free = add_member(u, first, free, last_slot, members, counts)
        if u != v:
            free = add_member(v, first, free, last_slot, members, counts)
    if end > begin:
        found[c], sizes[c] = free - first, end - first_edge


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
    return edge_part, number, work.masks(edges.tag, number)


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
        """Put every cluster where it adds least; begins, empty, step: see `place_clusters`."""
        of_cluster, table = place_clusters(self.edges, begins, self.degrees, self.shares, empty, step)
        run(_spread, even_chunks(len(self.parts), 2), self.edges.src, begins, of_cluster, self.parts)
        self.state = start_state(self.edges, self.parts, len(self.shares), table=table)
        step(4, 4)

    def refine(self, number: int, step: Step, saturated: np.ndarray | Sequence[int] = ()) -> None:
        """Sweep `number` of SCHEDULE; saturated: `saturated_counts` after the sweep before, if in another process."""
        state = self.state or self._counted_anew(saturated)
        state = self.state = state._replace(edge_part=self.parts)
        limit = arc_limit(self.edges, self.shares, BALANCE)
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

    def masks(self, tag: np.ndarray, number: np.ndarray) -> Masks:
        """See `cmr_stream`. Args: tag: [M], of the edges; number: [N], the new number of each vertex."""
        roles = 1 if self.edges.two_way else 2
        indptr = np.zeros(len(self.degrees) + 1, dtype=np.int64)
        np.cumsum(self.degrees, out=indptr[1:])
        marked = np.zeros((len(self.degrees), roles, (len(self.shares) + 63) // 64), dtype=np.uint64)
        run(_mark, own_ranges(indptr), self.edges.src, self.edges.dst, tag, self.parts, marked)
        sources = marked[number, 0]
        return sources, sources if self.edges.two_way else marked[number, 1]


# The plain loop, where an arc leaves `low` unless its tag says that `low` is the target:
#
#     for e in range(M):
#         leaves, arrives = (high[e], low[e]) if tag[e] & 1 else (low[e], high[e])
#         for vertex, role in ((leaves, 0), (arrives, 1)):
#             if begin <= vertex < end:
#                 marked[vertex, role] |= bit of parts[e]
#
# Whether an end is this thread's own cannot be predicted, so there is no `if`: an end of another thread becomes a
# vertex of this one (`spare`), and what is or-ed into its mask is 0. `spare` changes from edge to edge: writes to one
# word would wait for each other. Where edges are two-way there is one role, and `arrive` = 0 makes both the same.
@kernel(counted=False)
def _mark(begin, end, low, high, tag, parts, marked):
    """Parts of the vertices from begin to end: marked[v, 0] where their arcs leave, marked[v, 1] (or 0, if there is no
    1) where they arrive."""
    spares = SPARE_VERTICES - 1 if end - begin > SPARE_VERTICES - 1 else 0
    last = low.shape[0] - 1
    width, arrive = uint64(end - begin), marked.shape[1] - 1
    stride = marked.shape[1] * marked.shape[2]
    for e in range(last + 1):
        prefetch(WORD, marked, stride * np.int64(high[min(e + AHEAD, last)]))
        u, v, p = np.int64(low[e]), np.int64(high[e]), np.int64(parts[e])
        role = np.int64(tag[e]) & arrive  # of u; v has the other one
        own_u, own_v = uint64(u - begin) < width, uint64(v - begin) < width
        spare = begin + (e & spares)
        marked[u if own_u else spare, role, p >> 6] |= uint64(own_u) << uint64(p & 63)
        marked[v if own_v else spare, arrive - role, p >> 6] |= uint64(own_v) << uint64(p & 63)


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
