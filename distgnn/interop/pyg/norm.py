"""GCN's normalisation as factors per vertex, over the whole graph: nothing is stored per arc.

    weight(u -> v) = d[u] d[v],   d = (arcs at the vertex, loops included) ^ -1/2, 0 where there is none

With self-loops every vertex has exactly one. A vertex of which the graph has c self-loops has them aggregated with the
other arcs; 1 - c times its own row makes that one.

Legend: O owned rows.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from distgnn import ops
from distgnn.interop.pyg.arc_set import ArcSet
from distgnn.ops.aggregation.halo import with_halos
from distgnn.ops.function import constants, is_same, version_of
from distgnn.ops.sums import min_over_ranks


@dataclass(frozen=True, eq=False)
class GcnNorm:
    """Factors of one normalisation, and the arcs that PyG would have made.

    Args: arcs: what `edge_index` becomes; scale: d, wherever a vertex is met; factors: d [O]; loops: factors of a
        vertex's own row beside the arcs of the graph, None without self-loops.
    """

    arcs: ArcSet
    scale: ops.RowScale
    factors: torch.Tensor
    loops: ops.SelfLoops | None

    def sum_sources(self, rows: torch.Tensor) -> torch.Tensor:
        """The normalised sum over in-arcs of rows [O, D], kept for rows that never change. Collective, backward too."""
        return ops.spmm(self.arcs.graph, rows, None, self.scale, self.scale, self.loops)

    def weights(self) -> torch.Tensor:
        """The weight of every arc, [M], as PyG has it. Collective: yes."""
        ends = (self.arcs.spread(self.factors, role) for role in ("source", "target"))
        return next(ends) * next(ends)


def _gcn_norm(arcs: ArcSet, self_loops: bool, role: str, dtype: torch.dtype) -> GcnNorm:
    graph = arcs.graph
    degrees = graph.in_degrees() if role == "target" else graph.out_degrees()
    loops = None
    if self_loops:
        loops = self_loops_of_all(arcs)
        degrees, arcs = degrees - loops + 1, without_self_loops_of_all(arcs).with_loops()
    factors = degrees.double().pow(-0.5)
    factors = factors.masked_fill(torch.isinf(factors), 0).to(dtype)
    own = None
    if loops is not None:
        missing = _kept(arcs, "missing", lambda: (loops == 0).numpy())  # one array: arcs with loops are kept by it
        own = ops.SelfLoops((1 - loops).to(dtype) * factors.square(), missing)
    column = np.ascontiguousarray(factors.numpy()[:, None])
    halos = (with_halos(graph, column, end)[graph.num_owned :, 0].copy() for end in ("source", "target"))
    scale = ops.RowScale(factors.numpy(), *halos)
    return GcnNorm(arcs, scale, factors, own)


# --- of all arcs of a graph, kept. Collective: the first time --------------------------------------------------


def without_self_loops_of_all(arcs: ArcSet) -> ArcSet:
    """The arcs between two vertices: the same set where no rank has others."""

    def make() -> ArcSet:
        others = arcs.ids("source") != arcs.ids("target")
        none_anywhere = min_over_ranks(arcs.graph.transport.comm, int(others.all()))
        return arcs if none_anywhere else arcs.select(others)

    return _kept(arcs, "without", make)


def self_loops_of_all(arcs: ArcSet) -> torch.Tensor:
    """Arcs of each vertex to itself, int64 [O]."""
    return _kept(arcs, "loops", lambda: arcs.sum((arcs.ids("source") == arcs.ids("target")).double()).long())


def norm_of_all(arcs: ArcSet, self_loops: bool, role: str, dtype: torch.dtype) -> GcnNorm:
    """The factors of GCN; role: degrees count the arcs at their "target" (PyG's default flow) or "source"."""
    return _kept(arcs, (self_loops, role, dtype), lambda: _gcn_norm(arcs, self_loops, role, dtype))


def relations_of_all(arcs: ArcSet, relations: torch.Tensor, num_relations: int, mean: bool) -> ops.RelationArcs:
    """Arcs grouped by relation and target; mean: each divided by the number of its group's arcs on all ranks.

    Kept for the same tensor of relations, unchanged, on every rank.
    """
    graph = arcs.graph
    key = "relations", num_relations, mean
    known = graph.kept_arcs.get(key)
    same = known is not None and known[0]() is relations and is_same(relations, known[1]) and known[1] is not None
    if min_over_ranks(graph.transport.comm, int(same)):
        return known[2]
    with constants():
        made = ops.RelationArcs(graph, relations.long(), num_relations, "mean" if mean else None)
    graph.kept_arcs[key] = weakref.ref(relations), version_of(relations), made
    return made


def _kept(arcs: ArcSet, key: Any, make: Callable[[], Any]) -> Any:
    graph = arcs.graph
    if key not in graph.kept_arcs:
        with constants():
            graph.kept_arcs[key] = make()
    return graph.kept_arcs[key]
