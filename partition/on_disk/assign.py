"""Clusters of sorted edges merged into parts, then single edges moved, in passes over arrays that may be files.

Clusters are ranges of sorted edges: those with their lower end in it. They are merged as merge.py does. Then every edge
may move to a part where one of its ends is: the sweeps of `refine`, fewer of them.

Shapes: N vertices, M edges, K clusters, P parts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, even_chunks, get_num_threads, run
from distgnn.partition.core.edges import EdgeArrays, Edges
from distgnn.partition.core.shares import MOST_ARCS
from distgnn.partition.core.sorted_edges import Empty, Step
from distgnn.partition.refinement.cut_state import arc_limit, rebalance, start_state
from distgnn.partition.refinement.edge_moves import BETA, sweep
from distgnn.partition.refinement.groups import Groups, collect_groups
from distgnn.partition.refinement.merge import merge_groups

SCHEDULE = (2.0, 0.3, 0.0)
MOST_THREADS = 2  # each has a last slot of 8 bytes for every vertex

Phase = Callable[[str], AbstractContextManager[None]]  # phase(name): one is entered after the other


def assign(
    edges: EdgeArrays,
    begins: np.ndarray,
    degrees: np.ndarray,
    shares: np.ndarray,
    parts: np.ndarray,
    empty: Empty,
    step: Step,
    phase: Phase,
) -> None:
    """Write the part of each edge into `parts` int16 [M].

    Args: edges: sorted by source; begins: int64 [K + 1], the first vertex of each cluster; degrees: int32 [N].
    """
    limit = arc_limit(edges, shares, MOST_ARCS)
    with phase("place"):
        groups = cluster_groups(edges, begins, empty)
        of_cluster, table = merge_groups(groups, degrees, shares, len(parts))
        del groups
        run(_spread, even_chunks(len(parts), 2), edges.src, begins, of_cluster, parts)
        state = start_state(edges, parts, len(shares), table=table)
    for number, s in enumerate(SCHEDULE):
        with phase(f"refine_{number}"):
            sweep(edges, state, limit, BETA, s, shares, step=step)
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
