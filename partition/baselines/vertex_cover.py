"""Where to compute arcs between given owners such that fewest rows cross: a minimum vertex cover per pair of parts.

An arc u -> v between two owners is computed at the target's owner (u becomes a source halo there) or at the source's
(v becomes a target halo there). One halo row serves all arcs of its vertex between the two parts: the fewest rows are
the smallest set of ends that touches all of them. Both arcs of a two-way edge stay together.

Shapes: M edges of the edge list, N vertices.
Source: König's theorem; used for edge cuts by SuperGCN (pre- and post-aggregation).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, maximum_bipartite_matching

from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.core.edges import Edges


def cover_arcs(edge_list: Edges, owner: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Part [M] int16 of each edge: its owners' if they are one, else the one that a minimum vertex cover names.

    Edges that the cover leaves free go to the owner with less of its share so far.
    """
    num_parts = len(shares)
    here, there = owner[edge_list.src].astype(np.int64), owner[edge_list.dst].astype(np.int64)
    parts = here.astype(np.int16)
    crossing = np.flatnonzero(here != there)
    left, right = edge_list.src[crossing].astype(np.int64), edge_list.dst[crossing].astype(np.int64)
    if edge_list.two_way:  # one bipartite graph for each unordered pair: left is the lower part
        swap = here[crossing] > there[crossing]
        left, right = np.where(swap, right, left), np.where(swap, left, right)
    left_home, right_home = owner[left].astype(np.int64), owner[right].astype(np.int64)
    # A left end in the cover has a halo at the right end's owner, where the edge is computed, and the mirror.
    at_right, at_left = _cover(left * num_parts + right_home, right * num_parts + left_home)
    loads = np.bincount(parts[here == there], minlength=num_parts)
    chosen = np.empty(len(crossing), dtype=np.int16)
    _settle(left_home, right_home, at_left, at_right, shares, loads, chosen)
    parts[crossing] = chosen
    return parts


def _cover(left_keys: np.ndarray, right_keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each edge of a bipartite graph: whether its left, and whether its right end is in a minimum vertex cover."""
    left_ids, left = np.unique(left_keys, return_inverse=True)
    right_ids, right = np.unique(right_keys, return_inverse=True)
    shape = (len(left_ids), len(right_ids))
    # Nothing crosses: scipy takes no empty matrix.
    if not len(left):
        return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
    graph = sparse.csr_matrix((np.ones(len(left), dtype=np.int32), (left, right)), shape=shape)
    match = maximum_bipartite_matching(graph, perm_type="column").astype(np.int64)
    # König: unmatched left vertices and what alternating paths reach from them, along any edge to the right and back by
    # the matching; the cover is the left vertices not reached and the right ones reached. One vertex more is the start.
    matched, unmatched = np.flatnonzero(match >= 0), np.flatnonzero(match < 0)
    start = sum(shape)
    sources = np.concatenate([left, shape[0] + match[matched], np.full(len(unmatched), start)])
    targets = np.concatenate([shape[0] + right, matched, unmatched])
    steps = sparse.csr_matrix((np.ones(len(sources), dtype=bool), (sources, targets)), shape=(start + 1, start + 1))
    reached = np.zeros(start + 1, dtype=bool)
    reached[breadth_first_order(steps, start, return_predecessors=False)] = True
    return ~reached[left], reached[shape[0] + right]


@kernel
def _settle(left_home, right_home, at_left, at_right, shares, loads, chosen):
    """chosen[i] = the part the cover names; of two, the one with less of its share so far."""
    for i in range(chosen.shape[0]):
        a, b = left_home[i], right_home[i]
        if at_left[i] and at_right[i]:
            p = a if loads[a] * shares[b] <= loads[b] * shares[a] else b
        else:
            p = a if at_left[i] else b
        chosen[i] = p
        loads[p] += 1
