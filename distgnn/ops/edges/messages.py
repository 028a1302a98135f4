"""Message passing with DGL's operators, over the whole graph: every message function with every reducer.

`gspmm` aggregates messages at targets, `gsddmm` leaves them on arcs; operators, reducers and broadcasting are those
of `dgl.ops`. Messages that are a copied or a weighted source row are aggregated without being written down; all
others are made arc by arc.

Legend: O owned rows, A local arcs. Operands: "u" source rows [O, ...], "v" target rows [O, ...], "e" arc rows [A, ...].
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.aggregation.extreme import arc_extreme, extreme
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.aggregation.spmm import spmm
from distgnn.ops.attention.heads import pair_dots, spmm_heads
from distgnn.ops.edges.on_arcs import FLOATS, check_rows, flat, from_arcs, in_blocks, to_arcs
from distgnn.ops.edges.softmax import FEW, is_wide
from distgnn.ops.function import GraphView, linear_map, of_floats

Operator = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
OPERATORS: dict[str, Operator] = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
REDUCERS = ("sum", "mean", "max", "min")
Operand = Any  # torch.Tensor, or None where the operator copies the other one
ROLES = {"u": "source", "v": "target"}


@of_floats
def gspmm(graph: GraphView, op: str, reduce: str, lhs: Operand, rhs: Operand, role: str = "target") -> torch.Tensor:
    """Reduce messages at their targets.

    Collective: yes, and again in the backward pass.

    Args:
        op: add, sub, mul, div or dot of source rows `lhs` and arc rows `rhs`; copy_lhs, copy_rhs: one of them alone.
        reduce: sum, mean (over the in-degree in the whole graph), max or min; 0 where there is no in-arc.
        role: "source": arcs are turned round; `lhs` are target rows, and sums are at sources.

    Returns: owned rows [O, ...].

    Example:
        >>> ones = torch.ones(graph.num_edges(), 1)
        >>> out = dg.ops.gspmm(graph, "mul", "sum", graph.feats, ones)
        >>> torch.allclose(out, dg.ops.spmm(graph, graph.feats))
        True
    """
    _check(reduce, role)
    if op == "copy_lhs" and role == "source" and lhs.dtype in FLOATS:
        check_rows(graph, lhs, "target")
        found = linear_map(flat(lhs), partial(_over_arcs, graph, True), partial(_over_arcs, graph, False))
        return found.view(len(found), *lhs.shape[1:])
    if op == "copy_lhs" and role == "target":
        if reduce in ("max", "min"):
            return extreme(graph, lhs, reduce)
        return spmm(graph, lhs, target_scale=graph.degree_scale("in", -1) if reduce == "mean" else None)
    if op == "mul" and reduce in ("sum", "mean"):
        out = _weighted_sum(graph, lhs, rhs, role)
        if out is not None:
            return _divided(graph, out) if reduce == "mean" else out
    arc_rows = rhs if op == "copy_rhs" else gsddmm(graph, op, lhs, rhs, "u" if role == "target" else "v", "e")
    return reduce_arcs(graph, arc_rows, reduce, role)


def _check(reduce: str, role: str) -> None:
    if role == "source" and reduce != "sum":
        raise on_all_ranks(InputError(f"{reduce} over a reversed graph cannot run distributed: only sums can"))


def _over_arcs(graph: GraphView, transposed: bool, rows: torch.Tensor) -> torch.Tensor:
    arcs = graph.backward_arcs(weighted=False) if transposed else graph.forward_arcs
    return torch.from_numpy(arcs(as_array(rows), None)[0])


@of_floats
def gsddmm(
    graph: GraphView, op: str, lhs: Operand, rhs: Operand, lhs_target: str = "u", rhs_target: str = "v"
) -> torch.Tensor:
    """Messages on arcs, [A, ...], of two operands; copy_lhs, copy_rhs: one of them alone.

    Collective: yes, and again in the backward pass.

    Example:
        >>> dg.ops.gsddmm(graph, "dot", graph.feats, graph.feats).shape
        torch.Size([290, 1])
    """
    if op == "copy_lhs":
        return on_arcs(graph, lhs, lhs_target)
    if op == "copy_rhs":
        return on_arcs(graph, rhs, rhs_target)
    both_flat = lhs.dim() == rhs.dim() == 1
    if op == "dot" and not both_flat:
        widths = [rows.shape[-1] if rows.dim() > 1 else 1 for rows in (lhs, rhs)]
        if widths[0] != widths[1]:
            message = f"dot of rows whose last dimensions are {widths[0]} and {widths[1]}: make them equal"
            raise on_all_ranks(InputError(message))
        out = _dots(graph, (lhs, lhs_target), (rhs, rhs_target))
        if out is not None:
            return out
    left, right = (on_arcs(graph, rows, end) for rows, end in ((lhs, lhs_target), (rhs, rhs_target)))
    left, right = _padded(left, right)
    if op != "dot":
        return OPERATORS[op](left, right)
    return left * right if both_flat else (left * right).sum(-1, keepdim=True)


def on_arcs(graph: GraphView, rows: torch.Tensor, end: str) -> torch.Tensor:
    """Rows of "u" or "v" at every local arc; rows of "e" are there already."""
    return rows if end == "e" else to_arcs(graph, rows, ROLES[end])


@of_floats
def reduce_arcs(graph: GraphView, arc_rows: torch.Tensor, reduce: str, role: str = "target") -> torch.Tensor:
    """Reduce arc rows [A, ...] at their targets (sums also at their sources): [O, ...]."""
    _check(reduce, role)
    if reduce in ("max", "min"):
        return arc_extreme(graph, arc_rows, reduce)
    total = from_arcs(graph, arc_rows, role)
    return _divided(graph, total) if reduce == "mean" else total


def _weighted_sum(graph: GraphView, rows: torch.Tensor, weight: torch.Tensor, role: str) -> torch.Tensor | None:
    """Sum of source rows times one weight per arc, or per arc and head; None where weights are made in blocks.

    Args: role: as of `gspmm`.
    """
    weight = weight.to(rows.dtype)
    x, w = _padded(rows, weight)
    if w.shape[1:].numel() == 1 and role == "target":
        out = spmm(graph, rows, weight)
        return out.view(len(out), *torch.broadcast_shapes(x.shape[1:], w.shape[1:]))
    heads = w.shape[1:].numel()
    if is_wide(w) or not heads:
        return None
    shape = torch.broadcast_shapes(x.shape[1:], w.shape[1:])
    # Heads: the dimensions in which an arc has several weights. They may lie before or behind a head's own.
    order = sorted(range(1, x.dim()), key=lambda dim: w.shape[dim] == 1)
    sizes = [shape[dim - 1] for dim in order]
    x = x.expand(len(x), *shape).permute(0, *order).reshape(len(x), heads, shape.numel() // heads)
    out = spmm_heads(graph, x, w.permute(0, *order).reshape(len(w), heads), role)
    places = [1 + order.index(dim) for dim in range(1, w.dim())]
    return out.view(len(out), *sizes).permute(0, *places).contiguous()


def _dots(graph: GraphView, *ends: tuple[torch.Tensor, str]) -> torch.Tensor | None:
    """<source row, target row> over the last dimension, at every arc; None where these are no floats of one dtype, or
    of other ends, or where the numbers of an arc are to be made in blocks."""
    (left, _), (right, _) = sorted(ends, key=lambda end: end[1])
    if {end for _, end in ends} != {"u", "v"} or left.dtype != right.dtype or left.dtype not in FLOATS:
        return None
    both = _padded(left, right)
    *sizes, width = torch.broadcast_shapes(*(rows.shape[1:] for rows in both))
    heads = torch.Size(sizes).numel()
    if not heads * width or (in_blocks(graph) and heads > FEW):
        return None
    left, right = (rows.expand(len(rows), *sizes, width).reshape(len(rows), heads, width) for rows in both)
    return pair_dots(graph, left, right).view(graph.num_edges(), *sizes, 1)


def _divided(graph: GraphView, rows: torch.Tensor) -> torch.Tensor:
    degrees = graph.in_degrees().clamp(min=1).to(rows.dtype)
    return rows / degrees.view(-1, *[1] * (rows.dim() - 1))


def _padded(lhs: torch.Tensor, rhs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """DGL's broadcasting: the first dimension is the row, missing ones are put behind it."""
    dims = max(lhs.dim(), rhs.dim())
    left, right = (rows.view(len(rows), *[1] * (dims - rows.dim()), *rows.shape[1:]) for rows in (lhs, rhs))
    return left, right
