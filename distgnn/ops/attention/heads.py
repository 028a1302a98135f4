"""One number per arc and head: weights of an aggregation, and scores of the rows at both ends; with exact gradients.

    spmm_heads    y[v, h] = sum over arcs (u -> v) of weight[arc, h] * x[u, h]
    pair_dots     <source row[h], target row[h]> of every arc. This is the gradient of spmm_heads in its
                  weights, and spmm_heads is the gradient of pair_dots
    pair_scores   <attn[h], leaky_relu(source row[h] + target row[h])> of every arc (GATv2), without a row per arc:
                  backward the sums of both rows are taken again

Legend: O owned rows, A local arcs, H heads, F features per head.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array, onto_owners, with_halos
from distgnn.ops.edges.on_arcs import FLOATS, check_arc_rows, check_rows
from distgnn.ops.function import Function, GraphView, of_floats


@of_floats
def spmm_heads(graph: GraphView, feats: torch.Tensor, weight: torch.Tensor, role: str = "target") -> torch.Tensor:
    """Weighted sum of source rows over the in-arcs of each vertex, head by head; or of target rows over the out-arcs.

    Collective: yes, and again in the backward pass.

    Args:
        feats: owned rows [O, H, F], float32 or float64.
        weight: [A, H], same dtype.
        role: "source": of target rows, at sources.

    Returns: [O, H, F].

    Example:
        >>> rows = graph.feats.view(-1, 2, 4)
        >>> dg.ops.spmm_heads(graph, rows, torch.ones(graph.num_edges(), 2)).shape
        torch.Size([60, 2, 4])
    """
    check_arc_rows(graph, weight)
    if feats.dim() != 3 or feats.dtype not in FLOATS or feats.dtype != weight.dtype:
        raise ValueError(f"rows are {feats.dtype} {tuple(feats.shape)}: expected [O, H, F] in the dtype of weights")
    return _SpmmHeads.apply(feats, weight, graph, role == "source")


class _SpmmHeads(Function):
    @staticmethod
    def forward(
        ctx: Any, feats: torch.Tensor, weight: torch.Tensor, graph: GraphView, transposed: bool
    ) -> torch.Tensor:
        ctx.graph, ctx.transposed = graph, transposed
        ctx.save_for_backward(feats, weight)
        out, _ = _sums(graph, transposed)(_rows(feats), as_array(weight))
        return torch.from_numpy(out).view(len(out), *feats.shape[1:])

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        feats, weight = ctx.saved_tensors
        grads = _rows(grad)
        grad_feats = grad_weight = None
        if ctx.needs_input_grad[0]:
            out, _ = _sums(ctx.graph, not ctx.transposed)(grads, as_array(weight))
            grad_feats = torch.from_numpy(out).view(feats.shape)
        if ctx.needs_input_grad[1]:
            ends = (grads, _rows(feats)) if ctx.transposed else (_rows(feats), grads)
            grad_weight = torch.from_numpy(arc_dots(ctx.graph, *ends, weight.shape[1]))
        return grad_feats, grad_weight, None, None


def _sums(graph: GraphView, transposed: bool) -> Any:
    """What adds weighted rows over in-arcs, or over out-arcs."""
    return graph.backward_arcs(weighted=True) if transposed else graph.forward_arcs


@of_floats
def pair_dots(graph: GraphView, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """<source row, target row> of every local arc, head by head: the transpose of `spmm_heads` in both rows.

    Collective: yes, and again in the backward pass.

    Args: sources, targets: owned rows [O, H, F], float32 or float64.

    Returns: [A, H].

    Example:
        >>> rows = graph.feats.view(-1, 2, 4)
        >>> dg.ops.pair_dots(graph, rows, rows).shape
        torch.Size([290, 2])
    """
    check_rows(graph, sources)
    check_rows(graph, targets, "target")
    return _PairDots.apply(sources, targets, graph)


class _PairDots(Function):
    @staticmethod
    def forward(ctx: Any, sources: torch.Tensor, targets: torch.Tensor, graph: GraphView) -> torch.Tensor:
        ctx.graph = graph
        ctx.save_for_backward(sources, targets)
        return torch.from_numpy(arc_dots(graph, _rows(sources), _rows(targets), sources.shape[1]))

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        sources, targets = ctx.saved_tensors
        weight = as_array(grad)
        to_targets, _ = ctx.graph.forward_arcs(_rows(sources), weight)
        to_sources, _ = ctx.graph.backward_arcs(weighted=True)(_rows(targets), weight)
        return torch.from_numpy(to_sources).view(sources.shape), torch.from_numpy(to_targets).view(targets.shape), None


def arc_dots(graph: GraphView, sources: np.ndarray, targets: np.ndarray, heads: int) -> np.ndarray:
    """<source row, target row> of every local arc, head by head: owned [O, H * F] twice to [A, H]. Collective: yes."""
    shape = -1, heads, sources.shape[1] // heads
    sources, targets = with_halos(graph, sources, "source"), with_halos(graph, targets, "target")
    group, out = graph.local_arcs.grouped["target"], np.empty((graph.num_edges(), heads), sources.dtype)
    rows = sources.reshape(shape), targets.reshape(shape)
    return kernels.sddmm(group.indptr, group.others, *rows, out=out, edge_ids=group.arcs)


def _rows(feats: torch.Tensor) -> np.ndarray:
    return as_array(feats).reshape(len(feats), feats.shape[1] * feats.shape[2])


@of_floats
def pair_scores(
    graph: GraphView, sources: torch.Tensor, targets: torch.Tensor, attn: torch.Tensor, slope: float
) -> torch.Tensor:
    """Scores of local arcs, [A, H].

    Collective: yes, and again in the backward pass.

    Args: sources, targets: owned rows [O, H, F], float32 or float64; attn [1, H, F]; slope: of the leaky ReLU, from 0
        to 1.

    Example:
        >>> rows = graph.feats.view(-1, 2, 4)
        >>> dg.ops.pair_scores(graph, rows, rows, torch.ones(1, 2, 4), slope=0.2).shape
        torch.Size([290, 2])
    """
    check_rows(graph, sources)
    flat = (rows.flatten(1).contiguous() for rows in (sources, targets, attn))
    return _PairScores.apply(*flat, graph, attn.shape[1], slope)


class _PairScores(Function):
    @staticmethod
    def forward(
        ctx: Any,
        sources: torch.Tensor,
        targets: torch.Tensor,
        attn: torch.Tensor,
        graph: GraphView,
        heads: int,
        slope: float,
    ) -> torch.Tensor:
        ctx.graph, ctx.slope = graph, slope
        ctx.save_for_backward(sources, targets, attn)
        rows = with_halos(graph, as_array(sources), "source"), with_halos(graph, as_array(targets), "target")
        scores = kernels.pair_scores(*_grouped(graph, "target"), *rows, as_array(attn), heads, slope=slope)
        return torch.from_numpy(scores)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        graph, grads = ctx.graph, as_array(grad)
        sources, targets, attn = map(as_array, ctx.saved_tensors)
        sources, targets = with_halos(graph, sources, "source"), with_halos(graph, targets, "target")
        backward = partial(kernels.pair_scores_backward, attn=attn, grad=grads, slope=ctx.slope)
        to_targets, to_attn = backward(*_grouped(graph, "target"), sources, targets)
        to_sources, _ = backward(*_grouped(graph, "source"), targets, sources)
        shares = onto_owners(graph, to_sources, "source"), onto_owners(graph, to_targets, "target"), to_attn
        return *map(torch.from_numpy, shares), None, None, None


def _grouped(graph: GraphView, role: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(indptr, copies at the other ends, arc numbers) by the copy at one end."""
    group = graph.local_arcs.grouped[role]
    return group.indptr, group.others, group.arcs
