"""A linear layer and what follows it as one differentiable function: convolve.py without an aggregation.

    z = x W        y = dropout(relu(norm(z + bias)))        dW = x' g        dx = g W'        g = dL/dz

Kept are x, or how to make it again, and z where there is a norm, else y where something follows. g and dx are written
over the gradient of y where nobody else has that.

Legend: O rows, I columns in, D columns out.
"""

from typing import Any, NamedTuple

import torch

from distgnn.ops.dense.activation import (
    NO_EPILOGUE,
    Epilogue,
    Norm,
    SavedEpilogue,
    activated_again,
    activated_backward,
    column_sums,
    finish,
)
from distgnn.ops.dense.made_again import MadeAgain, lend, offer, taken
from distgnn.ops.dense.products import sum_of_products, weight_gradient
from distgnn.ops.entry import operator
from distgnn.ops.function import Remade
from distgnn.ops.protocol import GraphView


class _Call(NamedTuple):
    """What one call hands to both passes."""

    graph: GraphView
    epilogue: Epilogue
    alone: bool
    needs_grad: bool
    site: None = None


@operator
def linear(
    graph: GraphView,
    feats: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None = None,
    *,
    epilogue: Epilogue = NO_EPILOGUE,
    norm: Norm | None = None,
    alone: bool = False,
    again: MadeAgain | None = None,
    room: torch.Tensor | None = None,
) -> torch.Tensor:
    """Rows [O, I] times a weight [I, D] (None: the rows themselves), and what follows it.

    Args: alone: nobody else uses the gradient of the result, and only one other function the result, which is offered
        to be made again; again: how to make `feats` again, where another function takes them, too; room: rows to
        write the result over, if they are lent.

    Example:
        >>> dg.ops.linear(graph, graph.feats, torch.ones(8, 4), epilogue=dg.ops.Epilogue(relu=True)).shape
        torch.Size([60, 4])
    """
    needs_grad = torch.is_grad_enabled()
    if again is None and needs_grad:
        again = taken(feats)
        if again is not None and alone:
            lend(feats)
    gamma, beta = norm or (None, None)
    call = _Call(graph, epilogue, alone, needs_grad)
    offered: list[MadeAgain] = []
    out: torch.Tensor = _Linear.apply(feats, weight, bias, gamma, beta, again, call, offered, room)
    return offer(out, offered[0]) if offered and out.requires_grad else out


class _Linear(Remade):
    @staticmethod
    def run(feats, weight, bias, gamma, beta, call: _Call, room=None) -> tuple:  # type: ignore[no-untyped-def]
        graph = call.graph
        z = feats.detach() if weight is None else sum_of_products(graph, [(feats, weight)])
        norm = None if gamma is None else (gamma.detach(), beta.detach())
        may_write = weight is not None
        out, before = finish(
            graph, z, feats if room is None else room, bias, norm, call.epilogue, call.needs_grad, may_write
        )
        return out, _Kept(before)

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        *given, again, call, offered, room = inputs
        out = _Linear.forward_of(ctx, tuple(given), again, call, room)
        bias, gamma, beta = given[-3:]
        if gamma is not None and call.needs_grad and call.alone:
            z = ctx.kept.epilogue.rows
            offered.append(activated_again(call.graph, z, bias, (gamma, beta), call.epilogue, out.dtype))
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        (feats, *parameters), kept = _Linear.inputs_and_kept(ctx)
        weight, bias, gamma, beta = (None if one is None else one.detach() for one in parameters)
        feats, call, before = feats.detach(), ctx.call, kept.epilogue
        del kept
        grads, norm = grad.contiguous(), None if gamma is None or beta is None else (gamma, beta)
        more: Any = None, None, None
        is_ours = call.alone and grads.data_ptr() == grad.data_ptr()
        if before is not None:
            grads, *more = activated_backward(call.graph, grads, before, bias, norm, call.epilogue, is_ours)
            is_ours = True
        elif bias is not None:
            more = column_sums(grads), None, None
        del grad, before
        more = (more[0] if bias is not None else None, *more[1:])
        if weight is None:
            return grads, None, *more, None, None, None, None
        grads = grads.to(feats.dtype)
        of_weight = weight_gradient(call.graph, feats, grads) if ctx.needs_input_grad[1] else None
        shape, dtype = feats.shape, feats.dtype
        del feats
        of_feats = None
        if ctx.needs_input_grad[0]:
            over = grads if is_ours and tuple(grads.shape) == tuple(shape) and grads.dtype == dtype else None
            of_feats = sum_of_products(call.graph, [(grads, weight.T)], over)
        return of_feats, of_weight, *more, None, None, None, None


class _Kept(NamedTuple):
    """What is no input."""

    epilogue: SavedEpilogue | None

    @property
    def is_intact(self) -> bool:
        """Was the result not written to, where it is needed?"""
        return self.epilogue is None or self.epilogue.is_intact
