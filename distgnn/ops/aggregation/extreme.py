"""Maximum and minimum over the in-arcs of each vertex, over the whole graph, with the winner remembered.

    y[v, k] = max over arcs (u -> v) of x[u, k]        (or of m[arc, k]);   0 where v has no in-arc

Ties go to the smallest global arc id, as in DGL on the whole graph. Every rank finds its best arc of each target
copy; the owner merges (value, arc id); the winner's id travels back, so that in the backward pass only the rank that
has the winning arc passes the gradient on.

Legend: O owned rows, T target halos, A local arcs, D width.
"""

from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array, onto_owners, with_halos
from distgnn.ops.aggregation.partials import merge_at_owners
from distgnn.ops.edges.on_arcs import FLOATS, check_arc_rows, check_rows, flat
from distgnn.ops.entry import operator
from distgnn.ops.function import Function
from distgnn.ops.protocol import GraphView

NO_ARC = float(2**53)  # the id of "no arc": arc ids travel beside values, as float64


@operator
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
    return _Extreme.apply(flat(rows), graph, reduce).view(rows.shape)


@operator
def arc_extreme(graph: GraphView, arc_rows: torch.Tensor, reduce: str = "max") -> torch.Tensor:
    """The same over rows on arcs: [A, ...] to [O, ...]. Collective: yes, and again in the backward pass.

    Example:
        >>> on_arcs = torch.arange(graph.num_edges(), dtype=torch.float32)[:, None]
        >>> dg.ops.arc_extreme(graph, on_arcs).max().item() == graph.num_edges() - 1
        True
    """
    check_arc_rows(graph, arc_rows)
    return _ArcExtreme.apply(flat(arc_rows), graph, reduce).view(graph.num_owned, *arc_rows.shape[1:])


class _Extreme(Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, graph: GraphView, reduce: str) -> torch.Tensor:
        ctx.graph, copies = graph, with_halos(graph, as_array(rows), "source")
        out, ctx.winners = _forward(graph, copies, graph.local_arcs.grouped["target"].others, reduce)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        graph = ctx.graph
        group = graph.local_arcs.grouped["target"]
        num_copies = graph.local_arcs.grouped["source"].num_copies
        copies = _backward(graph, as_array(grad), ctx.winners, group.others, num_copies)
        return torch.from_numpy(onto_owners(graph, copies, "source")), None, None


class _ArcExtreme(Function):
    @staticmethod
    def forward(ctx: Any, arc_rows: torch.Tensor, graph: GraphView, reduce: str) -> torch.Tensor:
        ctx.graph = graph
        out, ctx.winners = _forward(graph, as_array(arc_rows), graph.local_arcs.grouped["target"].arcs, reduce)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        graph = ctx.graph
        arcs = graph.local_arcs.grouped["target"].arcs
        return torch.from_numpy(_backward(graph, as_array(grad), ctx.winners, arcs, graph.num_edges())), None, None


def _forward(graph: GraphView, rows: np.ndarray, indices: np.ndarray, reduce: str) -> tuple[np.ndarray, np.ndarray]:
    """The merged result [O, D], and the winning position of every target copy [O + T, D]: -1 where another rank won."""
    group = graph.local_arcs.grouped["target"]
    values, positions = kernels.spmm(group.indptr, indices, rows, reduce, keep_inf=True)
    ids = np.full(values.shape, NO_ARC)
    has_arc = positions >= 0
    ids[has_arc] = graph.local_arcs.arc_ids[group.arcs[positions[has_arc]]]
    pairs = np.concatenate([values.astype(np.float64), ids], axis=1)
    sign = 1 if reduce == "max" else -1
    best = merge_at_owners(graph, pairs, "target", lambda left, right: _better(left, right, sign))
    width = rows.shape[1]
    won = with_halos(graph, np.ascontiguousarray(best[:, width:]), "target") == ids
    out = best[:, :width].astype(rows.dtype)
    out[np.isinf(out)] = 0
    return out, np.where(won, positions, -1)


def _better(left: np.ndarray, right: np.ndarray, sign: int) -> np.ndarray:
    """Of two [*, 2D] blocks (values, arc ids), the better value; of equal ones the smaller id."""
    width = left.shape[1] // 2
    value, other = sign * left[:, :width], sign * right[:, :width]
    take = (other > value) | ((other == value) & (right[:, width:] < left[:, width:]))
    return np.where(np.concatenate([take, take], axis=1), right, left)


def _backward(
    graph: GraphView, grads: np.ndarray, winners: np.ndarray, indices: np.ndarray, num_rows: int
) -> np.ndarray:
    """The gradient of each target copy goes to the row behind its winner: [num_rows, D]."""
    grads = with_halos(graph, grads, "target")
    width = grads.shape[1]
    won = winners >= 0
    places = indices[winners[won]].astype(np.int64) * width + np.nonzero(won)[1]
    out = torch.zeros(num_rows * width, dtype=torch.from_numpy(grads).dtype)
    out.scatter_add_(0, torch.from_numpy(places), torch.from_numpy(grads[won]))
    return out.view(num_rows, width).numpy()
