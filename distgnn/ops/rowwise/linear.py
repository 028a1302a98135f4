"""A linear layer and what follows it as one differentiable function: convolve.py without an aggregation.

    z = x W        y = dropout(relu(norm(z + bias)))        dW = x' g        dx = g W'        g = dL/dz

Kept are x, and z where there is a norm, else y where something follows. What a chain frees is in chain.py. g and dx are
written over the gradient of y where nobody else has that.

Legend: O rows, I columns in, D columns out.
"""

from typing import Any

import torch

from distgnn.ops.function import GraphView, operator
from distgnn.ops.rowwise.activation import (
    NO_EPILOGUE,
    Epilogue,
    Norm,
    activated_again,
    activated_backward,
    column_sums,
    finish,
)
from distgnn.ops.rowwise.chain import Rows, apply
from distgnn.ops.rowwise.layer import Call, Given, Kept, Layer, Room
from distgnn.ops.rowwise.products import PieceRows, sum_of_products, weight_gradient


@operator
def linear(
    graph: GraphView,
    feats: torch.Tensor | Rows,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None = None,
    *,
    epilogue: Epilogue = NO_EPILOGUE,
    norm: Norm | None = None,
) -> torch.Tensor:
    """Rows [O, I] times a weight [I, D] (None: the rows themselves), and what follows it.

    Example:
        >>> dg.ops.linear(graph, graph.feats, torch.ones(8, 4), epilogue=dg.ops.Epilogue(relu=True)).shape
        torch.Size([60, 4])
    """
    call = Call(graph, epilogue, torch.is_grad_enabled())
    return apply(_Linear, call, feats, weight, bias, *(norm or (None, None)))


class _Linear(Layer):
    @staticmethod
    def run(feats, weight, bias, gamma, beta, call: Call, room: Room) -> tuple[torch.Tensor, Kept]:  # type: ignore[no-untyped-def]
        norm = None if gamma is None else (gamma, beta)
        z = feats if weight is None else sum_of_products(call.graph, [(feats, weight)])
        out, before = finish(call, z, bias, norm, room, may_write=weight is not None)
        return out, Kept(before)

    @staticmethod
    def again(call: Call, source: Any, inputs: Any, out: torch.Tensor, kept: Kept) -> PieceRows | None:
        return activated_again(call, inputs, out, kept.epilogue)

    @staticmethod
    def backward(call: Call, given: Given) -> tuple:
        (feats, weight, bias, gamma, beta), kept, grad = given.take()
        before = kept.epilogue
        del kept
        grads, norm = grad.contiguous(), None if gamma is None or beta is None else (gamma, beta)
        more: Any = None, None, None
        is_ours = given.is_ours and grads.data_ptr() == grad.data_ptr()
        if before is not None:
            grads, *more = activated_backward(call.graph, grads, before, bias, norm, call.epilogue, is_ours)
            is_ours = True
        elif bias is not None:
            more = column_sums(grads), None, None
        del grad, before
        more = (more[0] if bias is not None else None, *more[1:])
        if weight is None:
            return grads, None, *more
        grads = grads.to(feats.dtype)
        of_weight = weight_gradient(call.graph, feats, grads) if given.needs[1] else None
        shape, dtype = feats.shape, feats.dtype
        del feats
        of_feats = None
        if given.needs[0]:
            over = grads if is_ours and tuple(grads.shape) == tuple(shape) and grads.dtype == dtype else None
            of_feats = sum_of_products(call.graph, [(grads, weight.T)], over)
        return of_feats, of_weight, *more
