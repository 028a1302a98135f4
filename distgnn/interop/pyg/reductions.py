"""Torch's functions that reduce rows of arcs at one end: scatter, index_add, bincount, and assignment at self-loops.

As in `functions.py`, each handler has the arguments of the function it is named after and returns NotImplemented for
what it does not know.
"""

from typing import Any

import torch

from distgnn.interop.pyg.functions import check_size, handles
from distgnn.interop.pyg.norm import GcnNorm
from distgnn.interop.pyg.tensors import ArcEnds, ArcRows, ArcTensor
from distgnn.ops.sums import min_over_ranks

REDUCES = {"sum": "sum", "add": "sum", "mean": "mean", "amax": "max", "amin": "min", "max": "max", "min": "min"}


def reduce_at(ends: ArcEnds, arc_rows: Any, dim: int, reduce: str) -> torch.Tensor:
    """Reduce arc rows at one end: dimension `dim` becomes that of vertices. Collective: yes, and backward."""
    arcs = ends.arcs
    if isinstance(arc_rows, ArcRows) and arc_rows.written is None:
        if arc_rows.arcs is arcs and arc_rows.arc_dim == dim and (arc_rows.role, ends.role) == ("source", "target"):
            found = _reduce_unwritten(arc_rows, reduce)
            if found is not None:
                return found
    if isinstance(arc_rows, ArcTensor):
        arc_rows = arc_rows.plain(reduce)
    rows = arc_rows.movedim(dim, 0)
    if reduce in ("max", "min"):
        out = arcs.extreme(rows, reduce, ends.role)
    else:
        out = arcs.mean(rows, ends.role) if reduce == "mean" else arcs.sum(rows, ends.role)
    return out.movedim(0, dim)


def _reduce_unwritten(arc_rows: ArcRows, reduce: str) -> torch.Tensor | None:
    arcs, weight = arc_rows.arcs, arc_rows.weight
    rows = arc_rows.rows.movedim(arc_rows.arc_dim, 0)
    columns = rows.reshape(len(rows), rows.shape[1:].numel())
    if reduce in ("max", "min"):
        out = arcs.extreme_sources(columns, reduce) if weight is None else None
    elif isinstance(weight, GcnNorm):
        out = weight.sum_sources(columns)
        out = arcs.divided(out, "target") if reduce == "mean" else out
    elif weight is not None and weight.dim() == 2:
        out = arcs.sum_heads(rows, weight)
        out = arcs.divided(out, "target") if reduce == "mean" else out
    else:
        out = arcs.sum_sources(columns, weight, mean=reduce == "mean")
    return None if out is None else out.view(rows.shape).movedim(0, arc_rows.arc_dim)


def _reduced(out: torch.Tensor, dim: int, index: Any, arc_rows: Any, reduce: str) -> Any:
    """What torch's scatter functions would add to `out`, or NotImplemented."""
    if not isinstance(index, ArcEnds) or isinstance(out, ArcTensor):
        return NotImplemented
    dim = dim % out.dim()
    if index.dim() > 1 and index.arc_dim != dim:
        return NotImplemented
    check_size(index.arcs, out.size(dim))
    return reduce_at(index, arc_rows, dim, reduce)


@handles("scatter_add_", "index_add_")
def scatter_add_(out: Any, dim: int, index: Any, src: Any, *, alpha: float = 1) -> Any:
    total = _reduced(out, dim, index, src, "sum")
    return total if total is NotImplemented else out.add_(total, alpha=alpha)


@handles("scatter_add", "index_add")
def scatter_add(out: Any, dim: int, index: Any, src: Any, *, alpha: float = 1) -> Any:
    total = _reduced(out, dim, index, src, "sum")
    return total if total is NotImplemented else out.add(total, alpha=alpha)


@handles("scatter_reduce")
def scatter_reduce(out: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """Where a vertex has no arc `out` stays."""
    if reduce not in REDUCES or (include_self and REDUCES[reduce] != "sum"):
        return NotImplemented
    found = _reduced(out, dim, index, src, REDUCES[reduce])
    if found is NotImplemented:
        return found
    dim = dim % out.dim()
    has_arc = (index.arcs.degree(index.role) > 0).view(-1, *[1] * (out.dim() - dim - 1))
    return torch.where(has_arc, found + out if include_self else found, out)


@handles("scatter_reduce_")
def scatter_reduce_(out: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    found = scatter_reduce(out, dim, index, src, reduce, include_self=include_self)
    return found if found is NotImplemented else out.copy_(found)


@handles("bincount")
def bincount(index: Any, weights: Any = None, minlength: int = 0) -> Any:
    if not isinstance(index, ArcEnds):
        return NotImplemented
    return index.arcs.degree(index.role) if weights is None else reduce_at(index, weights, 0, "sum")


@handles("__setitem__")
def setitem(out: Any, index: Any, rows: Any) -> Any:
    """`out[ends] = rows`: of several arcs of a vertex the last one counts, as in torch on one process."""
    if not isinstance(index, ArcEnds) or index.dim() != 1 or isinstance(out, ArcTensor):
        return NotImplemented
    check_size(index.arcs, len(out))
    rows = rows.plain("__setitem__") if isinstance(rows, ArcTensor) else rows
    rows = rows if isinstance(rows, torch.Tensor) else torch.as_tensor(rows, dtype=out.dtype)
    rows = rows.expand(index.arcs.num_arcs, *out.shape[1:])
    set_by = "target"  # at self-loops both ends are one vertex
    if index.role != set_by:
        loops_only = torch.equal(index.arcs.ids("source"), index.arcs.ids("target"))
        if not min_over_ranks(index.arcs.graph.transport.comm, int(loops_only)):
            return NotImplemented
    has_arc, last = index.arcs.last(rows, set_by)
    out.copy_(torch.where(has_arc.view(-1, *[1] * (out.dim() - 1)), last, out))
    return None
