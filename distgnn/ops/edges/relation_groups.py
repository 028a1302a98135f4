"""Groups of the arcs of relations, a pair of a relation and a target copy each, in chunks.

Legend: O owned rows of a type, S / T its source and target halos, A arcs, G groups, g in a chunk, I columns in, D
columns out. Groups stand in the order of relations, and in a relation of targets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array, of_arrays, onto_owners, with_halos
from distgnn.ops.function import GraphView
from distgnn.ops.remote_rows import RowLookup
from distgnn.ops.rowwise.products import add_product, product

Rows = torch.Tensor


@dataclass(frozen=True)
class End:
    """Copies of one type at one end of arcs: owned rows and halos.

    Attributes: spread: owned rows [O, D] to copies [O + S, D]; add: its transpose. Collective: both.
    """

    num_owned: int
    num_copies: int
    spread: Callable[[Rows], Rows]
    add: Callable[[Rows], Rows]

    @classmethod
    def of_graph(cls, graph: GraphView, role: str) -> "End":
        both = of_arrays(with_halos, graph, role), of_arrays(onto_owners, graph, role)
        return cls(graph.num_at(role), graph.local_arcs.num_copies[role], *both)

    @classmethod
    def of_type(cls, space: Any, lookup: RowLookup | None) -> "End":
        if lookup is None:
            return cls(space.num_local, space.num_local, lambda rows: rows, lambda copies: copies)
        return cls(lookup.num_owned, lookup.num_owned + lookup.num_borrowed, lookup.table, lookup.onto_owners)


@dataclass
class Groups:
    """Groups of relations between two types as CSR: [G + 1], [A], a weight per arc or a factor per group, or neither.

    `targets` [G]: the target copy of each; `bounds`: where the groups of each of `relations` begin, and the end.
    """

    ends: tuple[int, int]
    relations: Sequence[int]
    bounds: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    targets: np.ndarray
    weight: np.ndarray | None = None
    scale: np.ndarray | None = None

    def chunks(self, size: int, first: int, num_copies: tuple[int, int]) -> "list[Chunk]":
        count = len(self.targets)
        starts = range(0, count, size)
        return [Chunk(self, slice(a, min(a + size, count)), first + a, num_copies) for a in starts]


class Chunk:
    """Some groups. `kept`: their places among all groups of their source type."""

    def __init__(self, groups: Groups, part: slice, kept: int, num_copies: tuple[int, int]):
        self.groups, self.source, self.target = groups, *groups.ends
        self.num_sources, self.num_targets = num_copies
        self.indptr, self.targets = groups.indptr[part.start : part.stop + 1], groups.targets[part]
        self.scale = None if groups.scale is None else groups.scale[part]
        self.kept = slice(kept, kept + len(self.targets))
        cut = np.clip(groups.bounds, part.start, part.stop) - part.start
        spans = zip(groups.relations, cut[:-1].tolist(), cut[1:].tolist(), strict=True)
        self.spans: list[tuple[int, slice]] = [(number, slice(a, b)) for number, a, b in spans if b > a]
        here, last = self.targets, len(self.targets) - 1
        in_order = len(self.spans) == 1 and int(here[last] - here[0]) == last  # one relation's targets increase
        self.range: slice | None = slice(int(here[0]), int(here[last]) + 1) if in_order else None

    def sums(self, copies: Rows, out: Rows) -> Rows:
        """Of source copies [O + S, I], [g, I]."""
        groups = self.groups
        given = self.indptr, groups.indices, as_array(copies), "sum", groups.weight, as_array(out)
        kernels.spmm(*given, target_scale=self.scale)
        return out

    @cached_property
    def _turned(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The same arcs by source, and their weights."""
        first, last = int(self.indptr[0]), int(self.indptr[-1])
        indices, weight = self.groups.indices[first:last], self.groups.weight
        indptr, others, order = kernels.transpose_csr(self.indptr - first, indices, self.num_sources)
        return indptr.astype(np.int32), others, None if weight is None else weight[first:last][order]

    def add_to_sources(self, rows: Rows, out: Rows) -> None:
        """Rows of groups [g, I] are added to source copies [O + S, I]: the transpose of `sums`."""
        indptr, others, weight = self._turned
        given = indptr, others, as_array(rows), "sum", weight, as_array(out)
        kernels.spmm(*given, source_scale=self.scale, accumulate=True)

    def add_products(self, graph: GraphView, sums: Rows, weights: Sequence[Rows], out: Rows) -> None:
        """Sums of groups, each times the matrix of its relation, are added to target copies [O + T, D]."""
        for number, span in self.spans:
            if self.range is not None:
                add_product(graph, sums, weights[number], out[self.range])
            else:
                made = product(graph, sums[span], weights[number])
                kernels.add_rows(as_array(out), self.targets[span], as_array(made))

    def at_groups(self, graph: GraphView, copies: Rows) -> Rows:
        """Rows of target copies [O + T, D] at groups, [g, D]."""
        if self.range is not None:
            return copies[self.range]
        out = graph.buffers.empty(len(self.targets), copies.shape[1], copies.dtype)
        kernels.pack_rows(as_array(copies), self.targets, out=as_array(out))
        return out
