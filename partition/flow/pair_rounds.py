"""Refinement by flows: parts that share vertices are cut anew, two by two.

Pairs go through in rounds of disjoint pairs, those that share most first, so that the pairs of a round are cut in
parallel. What one pair does is no other's business: a vertex in both parts costs the pair one copy, whatever other
parts it is in. So the result does not depend on the number of threads.

Shapes: M rows of the edge list, N vertices, P parts.
Source: ours; rounds of active pairs: Sanders and Schulz 2011.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import run
from distgnn.partition.core.edges import group
from distgnn.partition.flow.pair_cut import cut_pair
from distgnn.partition.flow.region import Pair

ROUNDS = 3
PAIRS_PER_PART = 8  # those that share most
LEAST_SAVED = 0.005  # of the copies beyond the first: a round that saves less is the last


class Limits(NamedTuple):
    """weights: float32 [M, 2], arcs and owned vertices of each row; most_weight: float64 [P, 2], of each in a part;
    most_held: float64 [P, 2], vertices in a part, and vertices that are in no other."""

    weights: np.ndarray
    most_weight: np.ndarray
    most_held: np.ndarray


class _Found(NamedTuple):
    """What came of a pair: copies saved; its rows [E] and their parts int16 [E]; its vertices [N of the pair], and in
    how many more parts they are."""

    saved: int
    rows: np.ndarray
    parts: np.ndarray
    vertices: np.ndarray
    more: np.ndarray


def cut_pairs(rows, edge_part: np.ndarray, limits: Limits) -> tuple[np.ndarray, bool]:
    """Fewer copies, within the limits or no farther beyond them than before.

    Args: rows: with src, dst [M] and num_nodes, as `Rows`; edge_part: int16 [M].
    Returns: part [M] int16, and whether enough was saved to go on from other parts.
    """
    num_parts = len(limits.most_weight)
    edge_part = edge_part.copy()
    changed = np.ones(num_parts, dtype=bool)
    worth_while = False
    for _ in range(ROUNDS):
        where = _incidence(rows, edge_part, num_parts)
        copies = np.diff(where.indptr)
        pairs = _pairs((where.T @ where).toarray(), changed)
        changed[:] = False
        saved = 0
        while len(pairs):
            chosen = _disjoint(pairs)
            found = _cut_all(pairs[chosen], rows, edge_part, copies, limits)
            for pair, new in zip(pairs[chosen], found, strict=True):
                edge_part[new.rows] = new.parts
                copies[new.vertices] += new.more
                changed[pair] |= new.saved > 0
                saved += new.saved
            pairs = pairs[~chosen]
        if saved < LEAST_SAVED * (where.nnz - np.count_nonzero(copies)):
            break
        worth_while = True
    return edge_part, worth_while


def _pairs(shared: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """Pairs of parts [X, 2], one of them changed, that share vertices; most first. shared: int [P, P]."""
    pairs = np.argwhere(np.triu(shared, 1) * (changed[:, None] | changed))
    most_first = np.argsort(-shared[pairs[:, 0], pairs[:, 1]], kind="stable")
    return pairs[most_first[: PAIRS_PER_PART * len(shared)]]


def _incidence(rows, edge_part, num_parts):
    """int64 [N, P], 1 where a vertex has a row in a part."""
    keys = np.concatenate([rows.src, rows.dst]).astype(np.int64) * num_parts
    keys += np.concatenate([edge_part, edge_part])
    keys = np.unique(keys)
    indptr = np.searchsorted(keys, np.arange(rows.num_nodes + 1, dtype=np.int64) * num_parts)
    return sparse.csr_matrix(
        (np.ones(len(keys), dtype=np.int64), keys % num_parts, indptr), (rows.num_nodes, num_parts)
    )


def _disjoint(pairs: np.ndarray) -> np.ndarray:
    """Which of the pairs [X, 2] have no part in common with an earlier one of them: bool [X]."""
    taken, chosen = set(), np.zeros(len(pairs), dtype=bool)
    for i, pair in enumerate(pairs.tolist()):
        if taken.isdisjoint(pair):
            taken.update(pair)
            chosen[i] = True
    return chosen


def _cut_all(pairs, rows, edge_part, copies, limits) -> list[_Found]:
    """Cut disjoint pairs [X, 2] anew; copies: [N], in how many parts each vertex is."""
    by_part = group(edge_part, len(limits.most_weight))
    found = [None] * len(pairs)

    def cut_some(start, stop):
        for i in range(start, stop):
            found[i] = _cut(pairs[i], rows, by_part, copies, limits)

    run(cut_some, range(len(pairs) + 1))
    return found


def _cut(both, rows, by_part, copies, limits) -> _Found:
    order, starts = by_part
    chosen = np.concatenate([order[starts[p] : starts[p + 1]] for p in both])
    vertices, ends = _own_numbers(rows, chosen)
    sides = np.zeros(len(chosen), dtype=np.uint8)
    sides[starts[both[0] + 1] - starts[both[0]] :] = 1
    before = _parts_of(ends, sides, len(vertices))
    alone = copies[vertices] == before
    pair = Pair(ends, sides, limits.weights[chosen], alone, limits.most_weight[both], limits.most_held[both])
    saved = cut_pair(pair, len(vertices))
    if not saved:
        nothing = np.empty(0, dtype=np.int64)
        return _Found(0, nothing, nothing, nothing, nothing)
    more = _parts_of(ends, sides, len(vertices)).astype(copies.dtype) - before
    return _Found(saved, chosen, both.astype(np.int16)[sides], vertices, more)


def _own_numbers(rows, chosen):
    """The vertices of these rows, and the rows' ends int32 [E, 2] as places among them."""
    vertices = np.empty(2 * len(chosen), dtype=rows.src.dtype)
    ends = np.empty((len(chosen), 2), dtype=np.int32)
    count = _number(rows.src, rows.dst, chosen, np.full(rows.num_nodes, -1, dtype=np.int32), vertices, ends)
    return vertices[:count].copy(), ends


@kernel(_nrt=False)
def _number(src, dst, chosen, number, vertices, ends):
    found = 0
    for i in range(chosen.shape[0]):
        for k in range(2):
            v = dst[chosen[i]] if k else src[chosen[i]]
            if number[v] < 0:
                number[v] = found
                vertices[found] = v
                found += 1
            ends[i, k] = number[v]
    return found


def _parts_of(ends, sides, num_vertices):
    """In how many of the two parts each vertex is: uint8 [N of the pair]."""
    held = np.zeros((num_vertices, 2), dtype=np.uint8)
    held[ends[:, 0], sides] = held[ends[:, 1], sides] = 1
    return held[:, 0] + held[:, 1]
