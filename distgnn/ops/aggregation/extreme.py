"""Maximum and minimum over the in-arcs of each vertex, over the whole graph.

    y[v, k] = max over arcs (u -> v) of x[u, k]        (or of m[arc, k]);   0 where v has no in-arc

`extreme` gives the gradient to one winner. Ties go to the smallest global arc id, as in DGL on the whole graph. Every
rank finds its best arc of each target copy; the owner merges (value, arc id); the winner's id travels back, so that in
the backward pass only the rank that has the winning arc passes the gradient on.

`tied_extreme` gives each of n equal winners 1 / n of it, as torch and PyG do. Only values are merged at owners (8 bytes
per number), and backward the number of winners. Where the result is 0 it is one more than there are: torch's
`scatter_reduce` starts from zeros, and counts its zero as equal.

Legend: O owned rows, S / T source and target halos, A local arcs, D width.
"""

from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array, merge_at_owners, onto_owners, with_halos
from distgnn.ops.edges.arc_blocks import ArcBlocks
from distgnn.ops.edges.on_arcs import FLOATS, check_arc_rows, check_rows, extreme_blocks, flat
from distgnn.ops.function import Function, GraphView, of_floats

NO_ARC = float(2**53)  # the id of "no arc": arc ids travel beside values, as float64
BETTER: dict[str, Any] = {"max": np.maximum, "min": np.minimum}


@of_floats
def extreme(graph: GraphView, rows: torch.Tensor, reduce: str = "max") -> torch.Tensor:
    """The largest (or smallest) source row over the in-arcs of each vertex, column by column.

    Collective: yes, and again in the backward pass.

    Args:
        rows: owned rows [O, ...], float32 or float64.
        reduce: "max" or "min".

    Returns: owned rows, shape and dtype of `rows`; 0 where there is no in-arc.

    Example:
        >>> dg.ops.extreme(graph, graph.feats).shape
        torch.Size([60, 8])
    """
    check_rows(graph, rows)
    if rows.dtype not in FLOATS:
        raise ValueError(f"rows are {rows.dtype}: {reduce} takes float32 or float64")
    return _Extreme.apply(flat(rows), graph, reduce, False).view(graph.num_at("target"), *rows.shape[1:])


@of_floats
def arc_extreme(graph: GraphView, arc_rows: torch.Tensor, reduce: str = "max") -> torch.Tensor:
    """The same over rows on arcs: [A, ...] to [O, ...]. Collective: yes, and again in the backward pass.

    Example:
        >>> on_arcs = torch.arange(graph.num_edges(), dtype=torch.float32)[:, None]
        >>> dg.ops.arc_extreme(graph, on_arcs).max().item() == graph.num_edges() - 1
        True
    """
    check_arc_rows(graph, arc_rows)
    if isinstance(arc_rows, ArcBlocks):
        return extreme_blocks(graph, graph.local_arcs.grouped["target"], arc_rows, reduce)[0]
    return _Extreme.apply(flat(arc_rows), graph, reduce, True).view(graph.num_at("target"), *arc_rows.shape[1:])


class _Extreme(Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, graph: GraphView, reduce: str, on_arcs: bool) -> torch.Tensor:
        group = graph.local_arcs.grouped["target"]
        table = as_array(rows) if on_arcs else with_halos(graph, as_array(rows), "source")
        ctx.graph, ctx.on_arcs, ctx.places = graph, on_arcs, group.arcs if on_arcs else group.others
        values, positions = kernels.spmm(group.indptr, ctx.places, table, reduce, keep_inf=True)
        if graph.comm.size == 1:
            ctx.winners, values[np.isinf(values)] = positions, 0
            return torch.from_numpy(values)
        ids = np.full(values.shape, NO_ARC)
        if len(group.arcs):
            np.copyto(ids, graph.local.arc_ids[group.arcs][positions], where=positions >= 0)
        pairs = np.concatenate([values.astype(np.float64), ids], axis=1)
        width, sign = rows.shape[1], 1 if reduce == "max" else -1

        def better(left: np.ndarray, right: np.ndarray) -> np.ndarray:
            """Of two [*, 2D] blocks (values, arc ids), the better value; of equal ones the smaller id."""
            value, other = sign * left[:, :width], sign * right[:, :width]
            take = (other > value) | ((other == value) & (right[:, width:] < left[:, width:]))
            return np.where(np.concatenate([take, take], axis=1), right, left)

        best = merge_at_owners(graph, pairs, "target", better)
        won = with_halos(graph, np.ascontiguousarray(best[:, width:]), "target") == ids
        ctx.winners = np.where(won, positions, -1)  # of every target copy [O + T, D]: -1 where another rank won
        out = best[:, :width].astype(table.dtype)
        out[np.isinf(out)] = 0
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        """The gradient of each target copy goes to the row behind its winner."""
        graph = ctx.graph
        grads = with_halos(graph, as_array(grad), "target")
        num_rows = graph.num_edges() if ctx.on_arcs else graph.local_arcs.grouped["source"].num_copies
        found = np.zeros((num_rows, grads.shape[1]), grads.dtype)
        kernels.add_winners(ctx.places, ctx.winners, grads, found)
        found = found if ctx.on_arcs else onto_owners(graph, found, "source")
        return torch.from_numpy(found), None, None, None


@of_floats
def tied_extreme(graph: GraphView, rows: torch.Tensor, reduce: str = "max") -> torch.Tensor:
    """The largest (or smallest) source row over the in-arcs of each vertex, column by column: [O, ...] to [O, ...].

    Collective: yes, and again in the backward pass.
    """
    check_rows(graph, rows)
    return _TiedExtreme.apply(flat(rows), None, graph, reduce, False).view(graph.num_at("target"), *rows.shape[1:])


@of_floats
def tied_arc_extreme(
    graph: GraphView, arc_rows: torch.Tensor, reduce: str = "max", own: torch.Tensor | None = None
) -> torch.Tensor:
    """The same over rows on arcs [A, ...], and over a row of each vertex itself, `own` [O, ...]: [O, ...].

    Collective: yes, and again in the backward pass.

    Notes: an arc whose row is infinite (-inf for "max") takes no part.
    """
    check_arc_rows(graph, arc_rows)
    own = None if own is None else flat(own)
    found = _TiedExtreme.apply(flat(arc_rows), own, graph, reduce, True)
    return found.view(len(found), *arc_rows.shape[1:])


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
        ctx.graph, ctx.on_arcs, ctx.best = graph, on_arcs, best
        # Rows of arcs are watched, as torch's. Rows of vertices may be written to: plain layers read copies of them.
        ctx.save_for_backward(rows if on_arcs else torch.from_numpy(table.copy()))
        return torch.from_numpy(np.where(np.isinf(best), 0, best).astype(table.dtype, copy=False))

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        graph, table = ctx.graph, as_array(ctx.saved_tensors[0])
        group = graph.local_arcs.grouped["target"]
        best = with_halos(graph, ctx.best, "target")
        places = group.arcs if ctx.on_arcs else group.others
        counts = kernels.count_ties(group.indptr, places, table, best)
        owned = onto_owners(graph, counts, "target") + (ctx.best == 0)  # see the head: torch's zero
        mine = None if ctx.own is None else (ctx.own == ctx.best).astype(table.dtype)
        shares = as_array(grad) / np.maximum(owned if mine is None else owned + mine, 1)
        grad_own = None if mine is None else torch.from_numpy(mine * shares)
        # Each winner's share: of arc rows [A, D], or added at the sources' owners [O, D].
        shares, ends = with_halos(graph, shares, "target"), graph.local_arcs.ends["target"]
        if ctx.on_arcs:
            grads = kernels.tied_sums(np.arange(len(ends) + 1), ends, table, best, shares)
        else:
            sources = graph.local_arcs.grouped["source"]
            grads = kernels.tied_sums(sources.indptr, sources.others, table, best, shares)
            grads = onto_owners(graph, grads, "source")
        return torch.from_numpy(grads), grad_own, None, None, None
