"""Whole clusters to parts, for `cmr-stream`: clusters that are ranges of sorted edges, merged as merge.py does.

Shapes: N vertices, M edges, K clusters, P parts, I incidences (a vertex with an edge in a cluster).
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, get_num_threads, run
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import Edges
from distgnn.partition.moves.group_moves import EXTRA_PRICE
from distgnn.partition.moves.groups import Groups, add_member, close_gaps
from distgnn.partition.moves.merge import MergeOptions, merge_groups
from distgnn.partition.moves.own_ends import WORD
from distgnn.partition.moves.replica_table import CopyTable
from distgnn.partition.sorting.bucket_sort import Empty, Step

AHEAD = 32  # edges between asking for a vertex's last slot and reading it
OPTIONS = MergeOptions(sweeps=8, first_guess=1.0, extra_price=EXTRA_PRICE)
MOST_THREADS = 2  # each has a last slot of 8 bytes for every vertex


def place_clusters(
    edges: Edges, begins: np.ndarray, degrees: np.ndarray, shares: np.ndarray, empty: Empty, step: Step
) -> tuple[np.ndarray, CopyTable]:
    """Part int16 [K] of each cluster, and the table of the cut.

    Args: edges: sorted by source; begins: int64 [K + 1], the first vertex of each cluster; degrees: [N]; shares: [P];
        empty, step: see bucket_sort.py.
    """
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
@inline(_nrt=False)
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
