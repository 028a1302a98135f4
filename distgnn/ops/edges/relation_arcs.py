"""Local arcs grouped by relation and target: for a transformation per relation, made once per group and not per arc.

Legend: O owned rows, S / T source and target halos, A local arcs, G groups (pairs of relation and target copy with an
arc; G <= A), R relations, D width.

    sums        source copies [O + S, D] -> groups [G, D]      weighted sum over the arcs of each group
    at_owners   groups [G, D] -> owned rows [O, D]             sum over the groups of each target, over all ranks

What is linear in the sources is done once per group between the two, and no row per arc is ever written.
"""

from functools import cached_property
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array, halo_broadcast, halo_reduce
from distgnn.ops.edges.on_arcs import check_update
from distgnn.ops.entry import operator
from distgnn.ops.function import linear_map
from distgnn.ops.graph_view import GraphView


class RelationArcs:
    """The groups of a DistGraph's local arcs.

    Args:
        graph: update on owners.
        relations: relation of every local arc, int64 [A].
        num_relations: R.
        weight: of every local arc, [A] or [A, 1], constant; None: 1.

    Attributes: counts: groups of each relation, a list of R; groups stand in the order of relations.

    Example:
        >>> arcs = dg.ops.RelationArcs(graph, graph.edata["etype"], 2)
        >>> sum(arcs.counts) <= graph.num_edges()
        True
    """

    @operator
    def __init__(
        self, graph: GraphView, relations: torch.Tensor, num_relations: int, weight: torch.Tensor | None = None
    ):
        check_update(graph)
        self.graph = graph
        ends, arcs = graph.local_arcs.ends, graph.local_arcs.grouped
        num_targets, num_sources = arcs["target"].num_copies, arcs["source"].num_copies
        keys = relations.numpy().astype(np.int64) * num_targets + ends["target"]
        groups, group_of_arc = np.unique(keys, return_inverse=True)
        self.counts: Any = np.bincount(groups // max(num_targets, 1), minlength=num_relations).tolist()
        weights = None if weight is None else weight.detach().reshape(-1).numpy()
        self._gather = _Matrix.of(ends["source"], group_of_arc, len(groups), num_sources, weights)
        targets = groups % max(num_targets, 1)
        self._scatter = _Matrix.of(np.arange(len(groups), dtype=np.int32), targets, num_targets, len(groups), None)

    @operator
    def sums(self, rows: torch.Tensor) -> torch.Tensor:
        """Weighted sums of owned rows [O, D] over the arcs of each group, [G, D]. Collective: yes, and backward.

        Notes: of constant rows they are kept, as `spmm` keeps them.
        """

        def compute(_: bool) -> torch.Tensor:
            owned = rows.contiguous()
            halos = halo_broadcast(self.graph, owned, "source")
            return self._gather.product(torch.cat([owned, halos]) if len(halos) else owned)

        return self.graph.constants.get(rows, None, (self,), compute)

    @operator
    def at_owners(self, group_rows: torch.Tensor) -> torch.Tensor:
        """Rows of groups [G, D], added at their targets' owners: [O, D]. Collective: yes, and backward."""
        copies = self._scatter.product(group_rows)
        owned, halos = copies[: self.graph.num_owned], copies[self.graph.num_owned :]
        return owned + halo_reduce(self.graph, halos.contiguous(), "target")


class _Matrix:
    """A sparse matrix between local rows as CSR, with its transpose made when first needed."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, num_cols: int, weight: np.ndarray | None):
        self.indptr, self.indices, self.num_cols, self.weight = indptr, indices, num_cols, weight

    @classmethod
    def of(
        cls, cols: np.ndarray, rows: np.ndarray, num_rows: int, num_cols: int, weight: np.ndarray | None
    ) -> "_Matrix":
        indptr, indices, order = kernels.csr_from_edges(cols, rows, num_rows)
        return cls(indptr, indices, num_cols, None if weight is None else weight[order])

    @cached_property
    def transposed(self) -> "_Matrix":
        indptr, indices, order = kernels.transpose_csr(self.indptr, self.indices, self.num_cols)
        return _Matrix(indptr, indices, len(self.indptr) - 1, None if self.weight is None else self.weight[order])

    def times(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(kernels.spmm(self.indptr, self.indices, as_array(rows), edge_weight=self.weight))

    def product(self, rows: torch.Tensor) -> torch.Tensor:
        return linear_map(rows, self.times, lambda grad: self.transposed.times(grad))
