"""Refinement by flows: parts that share vertices are cut anew, two by two.

Those that share most come first, and disjoint pairs are cut in parallel. Pairs do not depend on each other: a vertex in
both parts costs the pair one copy, whatever other parts it is in. So the result does not depend on the number of
threads.

Shapes: M edges, N vertices, P parts, X pairs; of one pair, E edges.
Source: ours; pairs of parts cut anew: Sanders and Schulz 2011, section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import run
from distgnn.partition.core.edges import Edges, group
from distgnn.partition.flow.pair_cut import cut_pair
from distgnn.partition.flow.region import Pair

PAIRS_PER_PART = 8  # those that share most

Grouped = tuple[np.ndarray, np.ndarray]  # edges by part, and where each part begins: of `group`


class Limits(NamedTuple):
    """weights: float32 [M, 2], arcs and owned vertices of each edge; max_weight: float64 [P, 2], of each in a part;
    max_copies: float64 [P, 3], vertices in a part, vertices that are in no other, and vertices that are."""

    weights: np.ndarray
    max_weight: np.ndarray
    max_copies: np.ndarray


class _Recut(NamedTuple):
    """What came of a pair: copies saved; its edges [E] and their parts int16 [E]; its vertices [N of the pair], and in
    how many more parts they are."""

    saved: int
    edge_ids: np.ndarray
    parts: np.ndarray
    vertices: np.ndarray
    more: np.ndarray


def cut_pairs(edges: Edges, edge_part: np.ndarray, limits: Limits, least_saved: float = 0.0) -> tuple[np.ndarray, bool]:
    """Fewer copies, within the limits or no farther beyond them than before.

    Args: edge_part: int16 [M]; least_saved: of the copies beyond the first.
    Returns: part [M] int16, and whether more than that was saved, to go on from other parts.
    """
    edge_part, saved = edge_part.copy(), 0
    where = _incidence(edges, edge_part, len(limits.max_weight))
    copies = np.diff(where.indptr)
    # where.T @ where: in how many vertices each two parts meet.
    pairs = _pairs((where.T @ where).toarray())
    # Disjoint pairs have no edge in common. The others wait: each has a part in common with one that is cut now.
    while len(pairs):
        chosen = _disjoint(pairs)
        for new in _cut_all(pairs[chosen], edges, edge_part, copies, limits):
            edge_part[new.edge_ids] = new.parts
            # Later pairs ask which vertices are in no third part: counts must follow what this pair moved.
            copies[new.vertices] += new.more
            saved += new.saved
        pairs = pairs[~chosen]
    # where.nnz: all copies at first. Less one for each vertex with an edge, these are beyond the first.
    return edge_part, saved > least_saved * (where.nnz - np.count_nonzero(copies))


def _pairs(shared: np.ndarray) -> np.ndarray:
    """Pairs of parts [X, 2] that share vertices, most first. shared: int [P, P]."""
    # Above the diagonal: each pair once. The diagonal itself is how many vertices each part has.
    pairs = np.argwhere(np.triu(shared, 1))
    most_first = np.argsort(-shared[pairs[:, 0], pairs[:, 1]], kind="stable")
    return pairs[most_first[: PAIRS_PER_PART * len(shared)]]


def _incidence(edges: Edges, edge_part: np.ndarray, num_parts: int) -> sparse.csr_matrix:
    """int64 [N, P], 1 where a vertex has an edge in a part."""
    ends = np.concatenate([edges.src, edges.dst])
    parts = np.concatenate([edge_part, edge_part])
    # Converting to CSR adds up what is in the same place.
    where = sparse.coo_matrix((np.ones(len(ends), dtype=np.int32), (ends, parts)), (edges.num_nodes, num_parts)).tocsr()
    where.data = np.ones(where.nnz, dtype=np.int64)
    return where


def _disjoint(pairs: np.ndarray) -> np.ndarray:
    """Which of the pairs [X, 2] have no part in common with an earlier one of them: bool [X]."""
    taken: set[int] = set()
    chosen = np.zeros(len(pairs), dtype=bool)
    for i, pair in enumerate(pairs.tolist()):
        if taken.isdisjoint(pair):
            taken.update(pair)
            chosen[i] = True
    return chosen


def _cut_all(
    pairs: np.ndarray, edges: Edges, edge_part: np.ndarray, copies: np.ndarray, limits: Limits
) -> list[_Recut]:
    """Cut disjoint pairs [X, 2] anew; copies: [N], in how many parts each vertex is."""
    by_part = group(edge_part, len(limits.max_weight))
    # By the number of the pair: threads finish in any order, and results are used in that of the pairs.
    found: dict[int, _Recut] = {}

    def cut_some(start: int, stop: int) -> None:
        for i in range(start, stop):
            found[i] = _cut(pairs[i], edges, by_part, copies, limits)

    run(cut_some, range(len(pairs) + 1))
    return [found[i] for i in range(len(pairs))]


def _cut(both: np.ndarray, edges: Edges, by_part: Grouped, copies: np.ndarray, limits: Limits) -> _Recut:
    """Cut the parts `both` [2] anew."""
    order, starts = by_part
    chosen = np.concatenate([order[starts[p] : starts[p + 1]] for p in both])
    vertices, ends = _own_numbers(edges, chosen)
    sides = np.zeros(len(chosen), dtype=np.uint8)
    # `chosen` holds all edges of the first part, then all of the second.
    sides[starts[both[0] + 1] - starts[both[0]] :] = 1
    before = _parts_of(ends, sides, len(vertices))
    # In as many parts as in these two: in no third one.
    only_here = copies[vertices] == before
    pair = Pair(ends, sides, limits.weights[chosen], only_here, limits.max_weight[both], limits.max_copies[both])
    saved = cut_pair(pair, len(vertices))
    if not saved:
        nothing = np.empty(0, dtype=np.int64)
        return _Recut(0, nothing, nothing, nothing, nothing)
    # Signed before it is subtracted: a vertex that left one of the two parts has -1, which uint8 would make 255.
    more = _parts_of(ends, sides, len(vertices)).astype(copies.dtype) - before
    return _Recut(saved, chosen, both.astype(np.int16)[sides], vertices, more)


def _own_numbers(edges: Edges, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The vertices of these edges, and the edges' ends int32 [E, 2] as places among them."""
    # Room for two new vertices of each edge; a table over all N vertices says which have their number already.
    vertices = np.empty(2 * len(chosen), dtype=edges.src.dtype)
    ends = np.empty((len(chosen), 2), dtype=np.int32)
    count = _number(edges.src, edges.dst, chosen, np.full(edges.num_nodes, -1, dtype=np.int32), vertices, ends)
    return vertices[:count].copy(), ends


@kernel(_nrt=False)
def _number(
    src: np.ndarray, dst: np.ndarray, chosen: np.ndarray, number: np.ndarray, vertices: np.ndarray, ends: np.ndarray
) -> int:
    """Number the vertices in the order in which they come; returns how many. number: int32 [N], -1 at first."""
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


def _parts_of(ends: np.ndarray, sides: np.ndarray, num_vertices: int) -> np.ndarray:
    """In how many of the two parts each vertex is: uint8 [N of the pair]."""
    present = np.zeros((num_vertices, 2), dtype=np.uint8)
    present[ends[:, 0], sides] = present[ends[:, 1], sides] = 1
    return present[:, 0] + present[:, 1]
