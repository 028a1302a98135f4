"""Maximum and minimum over the in-arcs of each vertex where equal ones share the gradient, as in torch and PyG.

    y[v, k] = max over arcs (u -> v) of x[u, k]  (or of m[arc, k]), and of own[v, k];   0 where there is none of them

`extreme` gives the whole gradient to one winner, as DGL does; here each of n equal winners gets 1 / n of it. Only
values are merged at owners (8 bytes per number), and backward the number of winners. Where the result is 0 it is one
more than there are: torch's `scatter_reduce` starts from zeros, and counts its zero as equal.

Legend: O owned rows, S / T source and target halos, A local arcs, D width.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array, merge_at_owners, onto_owners, with_halos
from distgnn.ops.edges.on_arcs import check_arc_rows, check_rows, flat
from distgnn.ops.entry import operator
from distgnn.ops.function import Function
from distgnn.ops.protocol import GraphView

COLUMNS = 16  # compared at a time: rows of arcs are never whole in memory
BETTER: dict[str, Any] = {"max": np.maximum, "min": np.minimum}


@operator
def tied_extreme(graph: GraphView, rows: torch.Tensor, reduce: str = "max") -> torch.Tensor:
    """The largest (or smallest) source row over the in-arcs of each vertex, column by column: [O, ...] to [O, ...].

    Collective: yes, and again in the backward pass.
    """
    check_rows(graph, rows)
    return _TiedExtreme.apply(flat(rows), None, graph, reduce, False).view(rows.shape)


@operator
def tied_arc_extreme(
    graph: GraphView, arc_rows: torch.Tensor, reduce: str = "max", own: torch.Tensor | None = None
) -> torch.Tensor:
    """The same over rows on arcs [A, ...], and over a row of each vertex itself, `own` [O, ...]: [O, ...].

    Collective: yes, and again in the backward pass.

    Notes: an arc whose row is infinite (-inf for "max") takes no part.
    """
    check_arc_rows(graph, arc_rows)
    own = None if own is None else flat(own)
    return _TiedExtreme.apply(flat(arc_rows), own, graph, reduce, True).view(graph.num_owned, *arc_rows.shape[1:])


class _TiedExtreme(Function):
    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, own: torch.Tensor | None, graph: GraphView, reduce: str, on_arcs: bool
    ) -> torch.Tensor:
        group = graph.local_arcs.grouped["target"]
        table = as_array(rows) if on_arcs else with_halos(graph, as_array(rows), "source")
        places = group.arcs if on_arcs else group.others
        values, _ = kernels.spmm(group.indptr, places, table, reduce, keep_inf=True)
        best = merge_at_owners(graph, values, "target", BETTER[reduce])
        ctx.own = None if own is None else as_array(own)
        best = best if ctx.own is None else BETTER[reduce](best, ctx.own)
        ctx.graph, ctx.on_arcs, ctx.table, ctx.best = graph, on_arcs, table.copy(), best
        return torch.from_numpy(np.where(np.isinf(best), 0, best).astype(table.dtype, copy=False))

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        graph, table = ctx.graph, ctx.table
        group = graph.local_arcs.grouped["target"]
        best = with_halos(graph, ctx.best, "target")
        counts = np.empty((group.num_copies, table.shape[1]), table.dtype)
        in_order = np.arange(len(group.arcs), dtype=np.int32)
        for columns, won in _winners(graph, table, best, ctx.on_arcs):
            counts[:, columns] = kernels.spmm(group.indptr, in_order, won)
        owned = onto_owners(graph, counts, "target") + (ctx.best == 0)  # see the head: torch's zero
        mine = None if ctx.own is None else (ctx.own == ctx.best).astype(table.dtype)
        shares = as_array(grad) / np.maximum(owned if mine is None else owned + mine, 1)
        grad_own = None if mine is None else torch.from_numpy(mine * shares)
        # Each winner's share: of arc rows [A, D], or added at the sources' owners [O, D].
        sources, shares = graph.local_arcs.grouped["source"], with_halos(graph, shares, "target")
        ends = np.repeat(np.arange(group.num_copies), np.diff(group.indptr))
        grads = np.empty_like(table)
        for columns, won in _winners(graph, table, best, ctx.on_arcs):
            rows = np.empty_like(won)
            rows[group.arcs] = won * shares[ends, columns]
            grads[:, columns] = rows if ctx.on_arcs else kernels.spmm(sources.indptr, sources.arcs, rows)
        grads = grads if ctx.on_arcs else onto_owners(graph, grads, "source")
        return torch.from_numpy(grads), grad_own, None, None, None


def _winners(
    graph: GraphView, table: np.ndarray, best: np.ndarray, on_arcs: bool
) -> Iterator[tuple[slice, np.ndarray]]:
    """(columns, 1 where an arc's row is its target's best), some columns at a time, arcs grouped by target."""
    group = graph.local_arcs.grouped["target"]
    places = group.arcs if on_arcs else group.others
    ends = np.repeat(np.arange(group.num_copies), np.diff(group.indptr))
    for first in range(0, table.shape[1], COLUMNS):
        columns = slice(first, min(first + COLUMNS, table.shape[1]))
        yield columns, (table[places, columns] == best[ends, columns]).astype(table.dtype)
