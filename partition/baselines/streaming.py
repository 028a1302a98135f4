"""One pass over the edges: Libra as DistGNN ships it in DGL, and dealing at random.

Shapes: M edges, N vertices, P parts. All return part [M] and are sequential by nature (Libra) or plain array work.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import AHEAD, WORD, Edges, endpoint_degrees
from distgnn.partition.core.part_masks import empty_mask, lowest_bit, mix, set_bit
from distgnn.partition.core.vertex_cut import MOST_ARCS, fair_counts, part_dtype


def libra(edge_list: Edges, shares: np.ndarray, seed: int = 0, order: str = "shuffled") -> np.ndarray:
    """Assign each edge to a part where its endpoints already are, the least loaded of them.

    Args:
        order: "shuffled" (a seeded permutation of the edges, no part beyond 1.03 x its share) or "stored" (the edges as
            they come and no limit: what DGL does).
        shares: [P], see `part_shares`; loads are compared relative to them.
    Returns: part [M].
    Source: Xie et al., NeurIPS 2014, in the form of DGL 1.1.3's `libra_vertex_cut`: with a common part, the least
        loaded common one; otherwise the least loaded of the lower-degree endpoint's parts; ties at random.
    """
    num_edges, num_parts = len(edge_list.src), len(shares)
    stream = np.arange(num_edges, dtype=np.int32 if num_edges < 2**31 else np.int64)
    if order == "shuffled":
        np.random.default_rng(seed).shuffle(stream)
    # At least 2 arcs: in tiny graphs an edge must fit somewhere.
    limit = max(MOST_ARCS * edge_list.num_arcs / num_parts, 2.0) if order == "shuffled" else np.inf
    degrees = endpoint_degrees(edge_list)
    parts: np.ndarray = np.empty(num_edges, dtype=part_dtype(num_parts))
    masks = empty_mask(edge_list.num_nodes, num_parts)
    # Arcs that an edge adds to its part.
    weight = 2 if edge_list.two_way else 1
    # What an arc counts in each part when loads are compared: 1 where all shares are equal.
    scales = 1.0 / (shares * num_parts)
    _libra(edge_list.src, edge_list.dst, stream, degrees, weight, limit, scales, seed, masks, parts)
    return parts


def deal(edge_list: Edges, shares: np.ndarray, seed: int = 0) -> np.ndarray:
    """Deal the edges out at random, to each part its share (to one edge)."""
    ids: np.ndarray = np.arange(len(shares), dtype=part_dtype(len(shares)))
    parts: np.ndarray = np.repeat(ids, fair_counts(len(edge_list.src), shares))
    np.random.default_rng(seed).shuffle(parts)
    return parts


@inline
def _least_loaded(mask_a, a, mask_b, b, load, need, limit, tie):
    """Least loaded part with room for `need` more that is in both sets (a row of each); -1 if none. `tie` picks."""
    best, best_load, equals = -1, np.inf, 0
    for w in range(mask_a.shape[1]):
        word = mask_a[a, w] & mask_b[b, w]
        while word != uint64(0):
            p = (w << 6) + lowest_bit(word)
            word &= word - uint64(1)
            if load[p] + need[p] > limit:
                continue
            # Ties at random in one pass: the n-th part with the least load replaces the one held with chance 1 / n.
            if load[p] < best_load:
                best, best_load, equals = p, load[p], 1
            elif best >= 0 and load[p] == best_load:
                equals += 1
                if mix(tie + uint64(equals)) % uint64(equals) == uint64(0):
                    best = p
    return best


@kernel
def _libra(src, dst, stream, degrees, weight, limit, scales, seed, masks, parts):
    """Edges in the order of `stream`. For each, plainly:

        low, high = ends of e, the lower degree first
        p = least loaded of masks[low] & masks[high], else of masks[low], else of masks[high], else of all parts
        parts[e] = p; load[p] += arcs of e; masks[low] and masks[high] gain p

    parts whose load would exceed the limit left out, but for the last choice.
    """
    num_parts = scales.shape[0]
    load = np.zeros(num_parts, dtype=np.float64)
    everywhere = np.zeros((1, masks.shape[1]), dtype=np.uint64)
    for p in range(num_parts):
        set_bit(everywhere, 0, p)
    single, double = 1.0 * scales, weight * scales
    limit += 1e-9  # loads are sums of fractions where shares are unequal
    base = mix(uint64(seed))
    last, words = stream.shape[0] - 1, masks.shape[1]
    for i in range(last + 1):
        # The edges are in no order: their ends are asked for first, what is known of these half as far ahead.
        later, soon = stream[min(i + 2 * AHEAD, last)], stream[min(i + AHEAD, last)]
        prefetch(WORD, src, later)
        prefetch(WORD, dst, later)
        for end in (np.int64(src[soon]), np.int64(dst[soon])):
            prefetch(WORD, degrees, end)
            prefetch(WORD, masks, words * end)
        e = stream[i]
        u, v = src[e], dst[e]
        low, high = (v, u) if degrees[u] >= degrees[v] else (u, v)
        # A self-loop is one arc, whatever the edge list.
        need = single if low == high else double
        tie = mix(base ^ uint64(i)) ^ uint64(e)
        p = _least_loaded(masks, low, masks, high, load, need, limit, tie)
        if p < 0:
            p = _least_loaded(masks, low, everywhere, 0, load, need, limit, tie)
        if p < 0:
            p = _least_loaded(masks, high, everywhere, 0, load, need, limit, tie)
        if p < 0:
            p = _least_loaded(everywhere, 0, everywhere, 0, load, need, np.inf, tie)
        parts[e] = p
        load[p] += need[p]
        set_bit(masks, low, p)
        set_bit(masks, high, p)
