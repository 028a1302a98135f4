"""Sums of neighbours mixed with other rows, as one function that keeps no rows for itself.

    mixed             y = (1 - alpha) A x + alpha x0         dx = (1 - alpha) A' g         dx0 = alpha g
    with_neighbours   y = (1 + eps) x + A x                  dx = (1 + eps) g + A' g       deps = <g, x>

Legend: O rows, D columns; A: aggregation with weights of arcs and scales; g = dL/dy.
"""

from typing import Any

import torch

from distgnn.ops.aggregation.aggregator import Scales
from distgnn.ops.aggregation.spmm import aggregate, spmm
from distgnn.ops.csr_rows import blocks
from distgnn.ops.function import GraphView, operator
from distgnn.ops.rowwise.activation import BLOCK_ROWS, NO_EPILOGUE
from distgnn.ops.rowwise.chain import Rows, apply, enter, tensor_of
from distgnn.ops.rowwise.layer import Call, Given, Kept, Layer, Room
from distgnn.ops.rowwise.products import PieceRows
from distgnn.ops.rowwise.sparse_rows import dense


@operator
def mixed(
    graph: GraphView, feats: Any, initial: Any, alpha: float, edge_weight: torch.Tensor | None, scales: Scales
) -> torch.Tensor:
    """(1 - alpha) A x + alpha x0 of rows x and x0 [O, D]. Collective: yes, and again in the backward pass.

    Args: feats, initial: tensors or `Rows`; edge_weight: [A].

    Example:
        >>> dg.ops.mixed(graph, graph.feats, graph.feats, 0.1, None, (None, None)).shape
        torch.Size([60, 8])
    """
    if not isinstance(feats, Rows):
        feats = dense(feats)
        trainable = edge_weight is not None and edge_weight.requires_grad and torch.is_grad_enabled()
        if trainable or feats.dim() != 2 or (not feats.requires_grad and graph.is_input(feats)):
            return (1 - alpha) * spmm(graph, feats, edge_weight, *scales) + alpha * initial
        feats = feats.contiguous()
    call = Call(graph, NO_EPILOGUE, torch.is_grad_enabled(), (alpha, edge_weight, scales), graph.next_site())
    return apply(_Mixed, call, feats, initial)


class _Mixed(Layer):
    reads_feats = False

    @staticmethod
    def run(feats: torch.Tensor, initial: torch.Tensor, call: Call, _room: Room) -> tuple[torch.Tensor, Kept]:
        alpha, weight, scales = call.how
        out, _ = aggregate(call.graph, feats, weight, scales, call.site)
        for rows in blocks(len(out), BLOCK_ROWS):
            out[rows].lerp_(initial[rows], alpha)
        return out, Kept(None)

    @staticmethod
    def backward(call: Call, given: Given) -> tuple:
        _, _, grad = given.take()
        grads, (alpha, weight, scales) = grad.contiguous(), call.how
        of_feats = of_initial = None
        if given.needs[0]:
            of_feats = aggregate(call.graph, grads, weight, scales, call.site, backward=True)[0].mul_(1 - alpha)
        if given.needs[1]:
            out = grads if given.is_ours else call.graph.buffers.empty_like(grads)
            of_initial = torch.mul(grads, alpha, out=out)
        return of_feats, of_initial


@operator
def with_neighbours(
    graph: GraphView, feats: torch.Tensor | Rows, eps: torch.Tensor, edge_weight: torch.Tensor | None = None
) -> torch.Tensor:
    """(1 + eps) x + A x of rows x [O, D], with eps [1]. Collective: yes, and again in the backward pass.

    Args: edge_weight: [A], without gradient.

    Example:
        >>> dg.ops.with_neighbours(graph, graph.feats, torch.zeros(1)).shape
        torch.Size([60, 8])
    """
    plain = dense(tensor_of(feats)).contiguous()
    if plain is not tensor_of(feats):
        feats = enter(graph, plain) if isinstance(feats, Rows) else plain
    sums = site = None
    if feats.requires_grad and torch.is_grad_enabled():
        site = graph.next_site()
    else:
        sums = spmm(graph, plain, edge_weight)
    del plain
    is_ours = sums is not None and not torch.is_grad_enabled() and not graph.constants.holds(sums)
    call = Call(graph, NO_EPILOGUE, torch.is_grad_enabled(), (edge_weight, is_ours), site)
    return apply(_WithNeighbours, call, feats, eps, sums)


class _WithNeighbours(Layer):
    @staticmethod
    def run(feats: torch.Tensor, eps: torch.Tensor, sums: Any, call: Call, _room: Room) -> tuple[torch.Tensor, Kept]:
        edge_weight, is_ours = call.how
        if sums is None:
            sums, is_ours = aggregate(call.graph, feats, edge_weight, (None, None), call.site)[0], True
        out = sums if is_ours else call.graph.buffers.empty_like(feats)
        for rows in blocks(len(out), BLOCK_ROWS):
            torch.add((1 + eps) * feats[rows], sums[rows], out=out[rows])
        return out, Kept(None)

    @staticmethod
    def again(call: Call, source: Any, inputs: Any, out: torch.Tensor, kept: Kept) -> PieceRows | None:
        """From x and A x of constant rows, which are kept anyway."""
        _, eps, sums = inputs
        if sums is None or not call.needs_grad:
            return None
        dtype = out.dtype
        return PieceRows(lambda rows: ((1 + eps) * source[rows] + sums[rows]).to(dtype), out.shape, dtype)

    @staticmethod
    def backward(call: Call, given: Given) -> tuple:
        (feats, eps, _), _, grad = given.take()
        of_feats = of_eps = None
        if given.needs[1]:
            of_eps = torch.zeros_like(eps)
            for rows in blocks(len(grad), BLOCK_ROWS):
                of_eps += (grad[rows] * feats[rows]).sum()
        if given.needs[0]:
            graph, weight = call.graph, call.how[0]
            of_feats, _ = aggregate(graph, grad.contiguous(), weight, (None, None), call.site, backward=True)
            for rows in blocks(len(grad), BLOCK_ROWS):
                of_feats[rows].add_((1 + eps) * grad[rows])
        return of_feats, of_eps, None
