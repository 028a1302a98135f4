"""Clusters of sorted edges, without an adjacency: found, merged into parts, then single edges moved.

Label propagation runs along sorted edges, which are half of an adjacency. Clusters are ranges of sorted edges: those
with their lower end in it. They are merged as merge.py does; then every edge may move to a part where one of its ends
is, in fewer sweeps than `refine` makes.

Shapes: N vertices, M edges, K clusters, P parts.
Source: ours; label propagation: Raghavan et al. 2007.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, even_chunks, get_num_threads, run
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.cmr.label_propagation import heaviest_label
from distgnn.partition.core.edges import WORD, EdgeArrays, Edges
from distgnn.partition.core.sorted_edges import Empty, SortedEdges, Step
from distgnn.partition.core.vertex_cut import MOST_ARCS
from distgnn.partition.folder.manifest import Clock
from distgnn.partition.refinement.cut_state import arc_limit, rebalance, start_state
from distgnn.partition.refinement.edge_moves import BETA, sweep
from distgnn.partition.refinement.groups import Groups, collect_groups
from distgnn.partition.refinement.merge import merge_groups

CLUSTER_PASSES = 3
PIECE_EDGES = 10_000_000  # between two reports of progress
SCHEDULE = (2.0, 0.3, 0.0)
MOST_THREADS = 2  # that collect groups: each has a last slot of 8 bytes for every vertex
AHEAD = 32  # edges between asking for a label and reading it


def cluster_by_edges(edges: SortedEdges, degrees: np.ndarray, cap: float, step: Step) -> tuple[np.ndarray, np.ndarray]:
    """Cluster label int32 [N] of each vertex (a vertex) and the clusters' volumes int64 [N].

    Label propagation over half of each edge: a vertex looks at its neighbours of higher degree, which weigh
    1 / sqrt(degree), in order of falling degree. It joins the label with most, if there is room below `cap`.

    Args: edges: of `sort_edges`; degrees: [N], descending; cap: most edge ends of a cluster of several vertices.
    Notes: memory 20 bytes for each vertex beside the results; sequential.
    """
    size = len(edges.low)
    # Label (int32) and voting weight (float32) of a vertex side by side: they are always read together.
    voters = np.empty((len(degrees), 2), dtype=np.int32)
    labels = voters[:, 0]
    labels[:] = np.arange(len(degrees))
    weights = voters.view(np.float32)
    weights[:, 1] = 1 / np.sqrt(np.maximum(degrees, 1))
    volumes, votes = degrees.astype(np.int64), np.zeros(len(degrees), dtype=np.float32)
    around = np.empty(int(degrees.max(initial=0)), dtype=np.int32)
    ballot = edges.low, edges.high, degrees, float(cap), voters, weights, volumes, votes, around
    for number in range(CLUSTER_PASSES):
        done = 0
        while done < size:
            last = edges.low[min(done + PIECE_EDGES, size) - 1]
            end = int(np.searchsorted(edges.low, last, side="right"))  # all edges of a vertex
            _vote_and_move(done, end, *ballot)
            done = end
            step(number * size + done, CLUSTER_PASSES * size)
    return labels.copy(), volumes


# Labels of neighbours are listed before they are counted, as in label_propagation.py: with that, and with labels asked
# for ahead, clusters took 1.8 s instead of 3.3 (52 M edges, docs/internals/cmr.md).
@kernel(counted=False)
def _vote_and_move(begin, end, low, high, degrees, cap, voters, weights, volumes, votes, around):
    """One vertex after the other moves to the label with most votes that has room, its own on a tie."""
    while begin < end:
        v, last = low[begin], begin
        while last < end and low[last] == v:
            prefetch(WORD, voters, 2 * np.int64(high[min(last + AHEAD, end - 1)]))
            around[last - begin] = voters[high[last], 0]
            prefetch(WORD, votes, around[last - begin])
            last += 1
        size, own = degrees[v], voters[v, 0]
        label = heaviest_label(v, begin, last - begin, size, high, around, voters, weights, volumes, cap, votes)
        if label != own:
            volumes[own] -= size
            volumes[label] += size
            voters[v, 0] = label
        begin = last


def assign(
    edges: EdgeArrays,
    begins: np.ndarray,
    degrees: np.ndarray,
    shares: np.ndarray,
    parts: np.ndarray,
    empty: Empty,
    clock: Clock,
) -> None:
    """Write the part of each edge into `parts` int16 [M].

    Args: edges: sorted by source; begins: int64 [K + 1], the first vertex of each cluster; degrees: int32 [N].
    """
    limit = arc_limit(edges, shares, MOST_ARCS)
    clock.start("place", 1)
    groups = cluster_groups(edges, begins, empty)
    of_cluster, table = merge_groups(groups, degrees, shares, len(parts))
    del groups
    run(_spread, even_chunks(len(parts), 2), edges.src, begins, of_cluster, parts)
    state = start_state(edges, parts, len(shares), table=table)
    for number, s in enumerate(SCHEDULE):
        clock.start(f"refine_{number}", 1)
        sweep(edges, state, limit, BETA, s, shares, step=clock.step)
    rebalance(edges, state, limit)


def cluster_groups(edges: Edges, begins: np.ndarray, empty: Empty) -> Groups:
    """The edges of each cluster, which are those with their source in it, as groups; begins: [K + 1]."""
    # In the dtype of src, which searchsorted would convert (and copy) otherwise.
    starts = np.searchsorted(edges.src, begins.astype(edges.src.dtype))
    size = len(edges.src)
    threads = min(get_num_threads(), MOST_THREADS) if size > FEW_EDGES else 1
    inner = np.searchsorted(starts, [size * i // threads for i in range(1, threads)])
    # A cluster has at most its vertices, which are the sources, and one target for each of its edges.
    return collect_groups(edges, starts, starts + begins, [0, *inner.tolist(), len(begins) - 1], empty)


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
