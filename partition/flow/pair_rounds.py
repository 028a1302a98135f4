"""Refinement by flows: parts that share vertices are cut anew, two by two.

Those that share most come first, and disjoint pairs are cut in parallel. Pairs do not depend on each other: a vertex in
both parts costs the pair one copy, whatever other parts it is in. So the result does not depend on the number of
threads.

Shapes: M edges, N vertices, P parts, X pairs; of one pair, E edges.
Source: ours; pairs of parts cut anew: Sanders and Schulz 2011, section 5.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy import sparse

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import run
from distgnn.partition.core.edges import Edges, group
from distgnn.partition.flow.pair_cut import cut_pair
from distgnn.partition.flow.region import Pair

PAIRS_PER_PART = 8  # those that share most
# Of a part's edges, those that are free in a pair's first region. With 0.3, 0.6 and 0.9, 9, 13 and 15 % fewer copies
# beyond the first, in 0.4, 1 and 3 times the seconds (of docs/LOG.md).
FREE = 0.6
# Regions that were too large for the balances are so in the next round, too, more or less: it begins with so many times
# the edges that were left (1.4 times is one step of `shrink`), at least with a few and at most as the first round did.
WIDER, LEAST_FREE = 3.0, 0.02


class Limits(NamedTuple):
    """weights: float32 [M, 2], arcs and owned vertices of each edge; max_weight: float64 [P, 2], of each in a part;
    max_copies: float64 [P, 3], vertices in a part, vertices that are in no other, and vertices that are."""

    weights: np.ndarray
    max_weight: np.ndarray
    max_copies: np.ndarray


class Memory(NamedTuple):
    """What a round of flows leaves to the next one. free: float64 [P, P], of p's edges, those that are free at first
    with q; idle: bool [P, P], whether p and q, p < q, were searched for nothing in the last one."""

    free: np.ndarray
    idle: np.ndarray


def no_memory(num_parts: int) -> Memory:
    return Memory(np.full((num_parts, num_parts), FREE), np.zeros((num_parts, num_parts), dtype=bool))


def cut_pairs(
    edges: Edges, edge_part: np.ndarray, limits: Limits, memory: Memory, least_saved: float = 0.0
) -> tuple[np.ndarray, bool]:
    """Fewer copies, within the limits or no farther beyond them than before.

    Args: edge_part: int16 [M]; memory: of the rounds before, which this one updates; least_saved: of the copies beyond
        the first.
    Returns: part [M] int16, and whether more than that was saved, to go on from other parts.
    """
    ends, num_parts = np.concatenate([edges.src, edges.dst]), len(limits.max_weight)
    at = ends, np.concatenate([edge_part, edge_part])
    # int64 [N, P], 1 where a vertex has an edge in a part: converting to CSR adds up what is in the same place.
    where = sparse.coo_matrix((np.ones(len(ends), dtype=np.int32), at), (edges.num_nodes, num_parts)).tocsr()
    where.data = np.ones(where.nnz, dtype=np.int64)
    this = _Round(edges, edge_part, np.diff(where.indptr), limits, memory)
    # where.nnz: all copies at first. Less one for each vertex with an edge, these are beyond the first.
    too_little = least_saved * (where.nnz - np.count_nonzero(this.copies))
    # where.T @ where: in how many vertices each two parts meet.
    pairs = _pairs((where.T @ where).toarray())
    # Who had nothing to save rests for a round, unless that would be the last one.
    resting = memory.idle[pairs[:, 0], pairs[:, 1]]
    memory.idle[pairs[:, 0], pairs[:, 1]] = False
    saved = this.cut_in_turn(pairs[~resting])
    if saved <= too_little:
        saved += this.cut_in_turn(pairs[resting])
    return this.edge_part, saved > too_little


class _Round:
    """Parts while pairs of them are cut anew. copies: int64 [N], in how many parts each vertex is."""

    def __init__(self, edges: Edges, edge_part: np.ndarray, copies: np.ndarray, limits: Limits, memory: Memory):
        self.edges, self.copies, self.limits, self.memory = edges, copies, limits, memory
        self.edge_part = edge_part.copy()
        order, starts = group(edge_part, len(limits.max_weight))
        self.edges_of = [order[begin:end] for begin, end in itertools.pairwise(starts)]
        # Of the pairs that save something, by number: threads finish in any order. Copies saved, vertices of the pair,
        # and in how many more parts they are.
        self.found: dict[int, tuple[int, np.ndarray, np.ndarray]] = {}
        # A table over all vertices, all -1, for each thread that is at work.
        self.tables: list[np.ndarray] = []

    def cut_in_turn(self, pairs: np.ndarray) -> int:
        """Cut all these pairs; returns the copies saved."""
        saved = 0
        # Disjoint pairs have no edge in common. The others wait: each has a part in common with one that is cut now.
        while len(pairs):
            taken: set[int] = set()
            chosen = np.zeros(len(pairs), dtype=bool)
            for i, pair in enumerate(pairs.tolist()):
                if taken.isdisjoint(pair):
                    taken.update(pair)
                    chosen[i] = True
            run(self._cut_some, range(np.count_nonzero(chosen) + 1), pairs[chosen])
            for i, (fewer, vertices, more) in sorted(self.found.items()):
                for p in pairs[chosen][i]:
                    self.edge_part[self.edges_of[p]] = p
                # Later pairs ask which vertices are in no third part: counts must follow what this pair moved.
                self.copies[vertices] += more
                saved += fewer
            self.found.clear()
            pairs = pairs[~chosen]
        return saved

    def _cut_some(self, start: int, stop: int, disjoint: np.ndarray) -> None:
        tables = self.tables
        number = tables.pop() if tables else np.full(self.edges.num_nodes, -1, dtype=np.int32)
        for i in range(start, stop):
            self._cut(i, disjoint[i], number)
        tables.append(number)

    def _cut(self, i: int, both: np.ndarray, number: np.ndarray) -> None:
        """Cut pair i of two parts; what it saves is `found`, and `edges_of` has the edges of both from now on."""
        (p, q), edges, copies, memory = both, self.edges, self.copies, self.memory
        chosen = np.concatenate([self.edges_of[p], self.edges_of[q]])
        ends, sides = np.empty((len(chosen), 2), dtype=np.int32), np.zeros(len(chosen), dtype=np.uint8)
        sides[len(self.edges_of[p]) :] = 1
        # Room for two new vertices of each edge.
        vertices = np.empty(2 * len(chosen), dtype=edges.src.dtype)
        vertices = vertices[: _number(edges.src, edges.dst, chosen, number, vertices, ends)]
        before = _parts_of(ends, sides, len(vertices))
        # In as many parts as in these two: in no third one.
        only_here = copies[vertices] == before
        free, most = np.array([memory.free[p, q], memory.free[q, p]]), self.limits.max_copies[both]
        pair = Pair(ends, sides, self.limits.weights[chosen], only_here, self.limits.max_weight[both], most, free)
        fewer = cut_pair(pair, len(vertices))
        memory.free[p, q], memory.free[q, p] = np.clip(WIDER * free, LEAST_FREE, FREE)
        memory.idle[p, q] = not fewer
        if fewer:
            # Signed before it is subtracted: a vertex that left a part has -1, which uint8 would make 255.
            more = _parts_of(ends, sides, len(vertices)).astype(copies.dtype) - before
            self.edges_of[p], self.edges_of[q] = (np.sort(chosen[sides == side]) for side in range(2))
            self.found[i] = fewer, vertices, more


def _pairs(shared: np.ndarray) -> np.ndarray:
    """Pairs of parts [X, 2] that share vertices, most first. shared: int [P, P]."""
    # Above the diagonal: each pair once. The diagonal itself is how many vertices each part has.
    pairs = np.argwhere(np.triu(shared, 1))
    most_first = np.argsort(-shared[pairs[:, 0], pairs[:, 1]], kind="stable")
    return pairs[most_first[: PAIRS_PER_PART * len(shared)]]


@kernel(counted=False)
def _number(src, dst, chosen, number, vertices, ends):
    """The vertices of these edges, numbered as they come, and the edges' ends int32 [E, 2] as places among them.

    Args: number: int32 [N], -1 before and after. Returns: how many vertices there are.
    """
    found = 0
    for i in range(chosen.shape[0]):
        for k in range(2):
            v = dst[chosen[i]] if k else src[chosen[i]]
            if number[v] < 0:
                number[v] = found
                vertices[found] = v
                found += 1
            ends[i, k] = number[v]
    for i in range(found):
        number[vertices[i]] = -1
    return found


def _parts_of(ends: np.ndarray, sides: np.ndarray, num_vertices: int) -> np.ndarray:
    """In how many of the two parts each vertex is: uint8 [N of the pair]."""
    present = np.zeros((num_vertices, 2), dtype=np.uint8)
    _mark_parts(ends, sides, present)
    return present[:, 0] + present[:, 1]


@kernel(counted=False)
def _mark_parts(ends, sides, present):
    """present[v, s] = 1 for the ends of each edge on side s."""
    for e in range(ends.shape[0]):
        present[ends[e, 0], sides[e]] = present[ends[e, 1], sides[e]] = 1
