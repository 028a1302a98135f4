"""Sums of neighbours mixed with other rows, as one function that keeps no rows for itself.

    mixed             y = (1 - alpha) A x + alpha x0         dx = (1 - alpha) A' g         dx0 = alpha g
    with_neighbours   y = (1 + eps) x + A x                  dx = (1 + eps) g + A' g       deps = <g, x>

Legend: O rows, D columns; A: aggregation with weights of arcs and scales; g = dL/dy.
"""

from typing import Any

import torch

from distgnn.ops.aggregation.row_scale import Scales
from distgnn.ops.aggregation.spmm import aggregate, spmm
from distgnn.ops.csr_rows import blocks
from distgnn.ops.dense.activation import BLOCK_ROWS
from distgnn.ops.dense.made_again import MadeAgain, lend, offer, taken
from distgnn.ops.dense.sparse_rows import dense
from distgnn.ops.entry import operator
from distgnn.ops.function import Function
from distgnn.ops.graph_view import GraphView


@operator
def mixed(
    graph: GraphView,
    feats: torch.Tensor,
    initial: torch.Tensor,
    alpha: float,
    edge_weight: torch.Tensor | None,
    scales: Scales,
    alone: bool = False,
) -> torch.Tensor:
    """(1 - alpha) A x + alpha x0 of rows x and x0 [O, D]. Collective: yes, and again in the backward pass.

    Args: edge_weight: [A]; alone: nobody else uses the gradient of the result, nor `feats` if it was offered to be made
        again: both may be written over.

    Example:
        >>> dg.ops.mixed(graph, graph.feats, graph.feats, 0.1, None, (None, None)).shape
        torch.Size([60, 8])
    """
    feats = dense(feats)
    trainable = edge_weight is not None and edge_weight.requires_grad and torch.is_grad_enabled()
    if trainable or feats.dim() != 2 or (not feats.requires_grad and graph.is_input(feats)):
        return (1 - alpha) * spmm(graph, feats, edge_weight, *scales) + alpha * initial
    if alone and torch.is_grad_enabled() and taken(feats) is not None:
        lend(feats)
    call = graph, edge_weight, scales, graph.next_site()
    out: torch.Tensor = _Mixed.apply(feats.contiguous(), initial, alpha, call, alone)
    return out


class _Mixed(Function):
    @staticmethod
    def forward(ctx: Any, feats: torch.Tensor, initial: torch.Tensor, alpha: float, call: tuple, alone: bool) -> Any:
        ctx.alpha, ctx.call, ctx.alone = alpha, call, alone
        out, _ = aggregate(call[0], feats.detach(), *call[1:])
        for rows in blocks(len(out), BLOCK_ROWS):
            out[rows].mul_(1 - alpha).add_(alpha * initial[rows].detach())
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        (graph, weight, scales, site), grads = ctx.call, grad.contiguous()
        of_feats = of_initial = None
        if ctx.needs_input_grad[0]:
            of_feats = aggregate(graph, grads, weight, scales, site, backward=True)[0].mul_(1 - ctx.alpha)
        if ctx.needs_input_grad[1]:
            out = grads if ctx.alone else graph.buffers.empty_like(grads)
            of_initial = torch.mul(grads, ctx.alpha, out=out)
        return of_feats, of_initial, None, None, None


@operator
def with_neighbours(
    graph: GraphView,
    feats: torch.Tensor,
    eps: torch.Tensor,
    edge_weight: torch.Tensor | None = None,
    alone: bool = False,
) -> torch.Tensor:
    """(1 + eps) x + A x of rows x [O, D], with eps [1]. Collective: yes, and again in the backward pass.

    Args: edge_weight: [A], without gradient; alone: as in `mixed`, of `feats`.

    Example:
        >>> dg.ops.with_neighbours(graph, graph.feats, torch.zeros(1)).shape
        torch.Size([60, 8])
    """
    feats, again = dense(feats), taken(feats)
    if again is not None and alone:
        lend(feats)
    feats, sums, site = feats.contiguous(), None, None
    if feats.requires_grad and torch.is_grad_enabled():
        site = graph.next_site()
    else:
        sums = spmm(graph, feats, edge_weight)
    is_ours = sums is not None and not torch.is_grad_enabled() and not graph.constants.holds(sums)
    call = graph, edge_weight, site, is_ours
    out: torch.Tensor = _WithNeighbours.apply(feats, eps, sums, again, call)
    if sums is not None and out.requires_grad:  # both are kept anyway

        def make(kept: Any, rows: slice) -> torch.Tensor:
            feats, sums, eps = kept
            return ((1 + eps) * feats[rows] + sums[rows]).to(feats.dtype)

        offer(out, MadeAgain((feats, sums, eps.detach()), make, (len(out), out.shape[1]), out.dtype))
    return out


class _WithNeighbours(Function):
    @staticmethod
    def forward(ctx: Any, feats: torch.Tensor, eps: torch.Tensor, sums: Any, again: Any, call: tuple) -> torch.Tensor:
        ctx.call, ctx.again = call, None if again is None else again.of(())
        graph, edge_weight, site, is_ours = call
        if sums is None:
            sums, is_ours = aggregate(graph, feats.detach(), edge_weight, (None, None), site)[0], True
        out = sums if is_ours else graph.buffers.empty_like(feats)
        for rows in blocks(len(out), BLOCK_ROWS):
            torch.add((1 + eps) * feats[rows], sums[rows], out=out[rows])
        ctx.save_for_backward(eps, *((feats,) if again is None else again.kept))
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        (graph, edge_weight, site, _), (eps, *kept) = ctx.call, ctx.saved_tensors
        feats: Any = kept[0] if ctx.again is None else ctx.again.of(kept)
        of_feats = of_eps = None
        if ctx.needs_input_grad[1]:
            of_eps = torch.zeros_like(eps)
            for rows in blocks(len(grad), BLOCK_ROWS):
                of_eps += (grad[rows] * feats[rows]).sum()
        if ctx.needs_input_grad[0]:
            of_feats, _ = aggregate(graph, grad.contiguous(), edge_weight, (None, None), site, backward=True)
            for rows in blocks(len(grad), BLOCK_ROWS):
                of_feats[rows].add_((1 + eps) * grad[rows])
        return of_feats, of_eps, None, None, None
