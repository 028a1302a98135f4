"""A norm whose statistics are over all vertices, and what follows it, as one differentiable function.

    m = mean(x)    c = centre(m)    q = mean((x - c)²)    (s, b) = factors(q)    y = dropout(relu((x - c) s + b))

Legend: V rows of the model, N vertices of the whole graph, D columns; m, c, q, s, b are [D], a number for each column.

Only x is kept: y is made again in the backward pass, block by block, for what ReLU and mask let through. With g that
part of the gradient, and L the loss:

    dL/ds = Σ g (x - c)    dL/db = Σ g    dL/dc = -s Σ g - 2 dL/dq (m - c)    dx = g s + 2 dL/dq (x - c) / N + dL/dm / N

dL/dq, dL/dm and the gradients of parameters come from `centre` and `factors` on [D] numbers, by torch. Passes go block
by block, so nothing as large as x is made but the result.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.ops.csr_rows import blocks
from distgnn.ops.function import GraphView, operator
from distgnn.ops.rowwise.activation import (
    BLOCK_ROWS,
    NO_EPILOGUE,
    Epilogue,
    SavedEpilogue,
    activated,
    activated_backward,
    rows_of,
)
from distgnn.ops.rowwise.chain import Rows, apply, tensor_of
from distgnn.ops.rowwise.layer import Call, Given, Kept, Layer
from distgnn.ops.rowwise.products import PieceRows, whole

Small = torch.Tensor  # [D]
Copy = Callable[[torch.Tensor], torch.Tensor]


class _Norm(NamedTuple):
    """`how` of a call."""

    norm: Any
    is_fixed: bool


@operator
def column_norm(
    graph: GraphView,
    rows: torch.Tensor | Rows,
    norm: Any,
    parameters: Sequence[Small],
    *,
    fixed: tuple[Small, Small] | None = None,
    epilogue: Epilogue = NO_EPILOGUE,
) -> tuple[Any, Small, Small]:
    """The norm of rows [V, D] over all vertices and what follows it; and the statistics m and q, without gradient.

    Collective: twice, and once in the backward pass; with `fixed` statistics not at all.

    Args:
        norm: one with `centre(m, parameters)`, which gives c, and `factors(q, parameters)`, which gives (s, b), of
            torch's operations on [D] numbers.
        parameters: of the norm, [D] each; fixed: (m, q) in place of those of `rows`; epilogue: what follows.
    """
    with torch.no_grad():
        if fixed is None:
            plain = tensor_of(rows).detach()
            copy, _ = _room(plain)
            mean = _mean(graph, plain, copy, None)
            square = _mean(graph, plain, copy, norm.centre(mean, [one.detach() for one in parameters]))
            del plain
        else:
            mean, square = (one.detach().clone() for one in fixed)
    call = Call(graph, epilogue, torch.is_grad_enabled(), _Norm(norm, fixed is not None))
    rows = rows if isinstance(rows, Rows) else rows.contiguous()
    return apply(_ColumnNorm, call, rows, mean, square, *parameters), mean, square


class _ColumnNorm(Layer):
    goes_over = True

    @staticmethod
    def run(rows: torch.Tensor, mean: Small, square: Small, *others: Any) -> tuple[torch.Tensor, Kept]:
        *own, call, room = others
        numbers, (copy, _) = _numbers(call, mean, square, own), _room(rows)
        over = room.take(rows)
        out = call.graph.buffers.empty_like(rows) if over is None else over
        for block in blocks(len(rows), BLOCK_ROWS):
            out[block].copy_(_made(call, rows, block, numbers, copy))
        return out, Kept(None)

    @staticmethod
    def again(call: Call, source: Any, inputs: Any, out: torch.Tensor, kept: Kept) -> PieceRows | None:
        """The result, from `rows`, or from what those are made of."""
        if not call.needs_grad:
            return None
        numbers = _numbers(call, inputs[1], inputs[2], inputs[3:])

        def make(block: slice) -> torch.Tensor:
            before = source[block]
            out = call.graph.buffers.empty_like(before)
            wide = out if out.dtype != torch.bfloat16 else out.float()
            made = _made(call, before, slice(None), numbers, wide.copy_, rows_of(call.epilogue, block))
            return out.copy_(made)

        return PieceRows(make, out.shape, out.dtype)

    @staticmethod
    def backward(call: Call, given: Given) -> tuple:
        (rows, mean, square, *parameters), _, grad = given.take()
        rows, grad = whole(rows), grad.contiguous()
        copy, other = _room(rows)
        with torch.enable_grad():
            leaves = [one.detach().requires_grad_() for one in (mean, square, *parameters)]
            centre = call.how.norm.centre(leaves[0], leaves[2:])
            scale, offset = call.how.norm.factors(leaves[1], leaves[2:])
        c, s, b = (one.detach() for one in (centre, scale, offset))
        is_fixed = call.how.is_fixed
        out = grad if given.is_ours else call.graph.buffers.empty_like(grad)
        total, moment = torch.zeros_like(c), torch.zeros_like(c)
        for block in blocks(len(rows), BLOCK_ROWS):
            g = other(grad[block])
            if not call.epilogue.is_empty:
                made = SavedEpilogue(_made(call, rows, block, (c, s, b), copy))
                activated_backward(
                    call.graph, g, made, None, None, rows_of(call.epilogue, block), may_overwrite_grad=True
                )
            out[block].copy_(g)
            total += g.sum(0)
            moment += copy(rows[block]).sub_(c).mul_(g).sum(0)
        of_square = _grads([scale], [moment], leaves[1:2])[0] * (not is_fixed)
        of_centre = -s * total - 2 * of_square * (mean - c)
        of_mean, *of_parameters = _grads([centre, scale, offset], [of_centre, moment, total], [leaves[0], *leaves[2:]])
        if not is_fixed:
            both = sum_over_ranks(call.graph.transport.comm, torch.stack([of_square, of_mean]).numpy())
            slope, constant = (
                torch.from_numpy(both) / call.graph.num_global_nodes * torch.tensor([[2.0], [1.0]], dtype=s.dtype)
            )
        for block in blocks(len(rows), BLOCK_ROWS):
            g = other(out[block]).mul_(s)
            if not is_fixed and block.start < call.graph.num_owned:
                owned = slice(0, call.graph.num_owned - block.start)
                g[owned] += copy(rows[block][owned]).sub_(c).mul_(slope).add_(constant)
            out[block].copy_(g)
        needed = (one if needed else None for one, needed in zip(of_parameters, given.needs[3:], strict=True))
        return out, None, None, *needed


def _numbers(call: Call, mean: Small, square: Small, parameters: Sequence[Small]) -> tuple[Small, Small, Small]:
    """c, s and b."""
    scale, offset = call.how.norm.factors(square, parameters)
    return call.how.norm.centre(mean, parameters), scale, offset


def _room(rows: torch.Tensor) -> tuple[Copy, Copy]:
    """Two functions that copy a block of rows in the dtype of sums. Each writes over its last copy: fresh memory would
    be faulted in."""
    dtype = torch.float32 if rows.dtype == torch.bfloat16 else rows.dtype
    one, two = torch.empty(2, min(BLOCK_ROWS, len(rows)), rows.shape[1], dtype=dtype)
    return lambda block: one[: len(block)].copy_(block), lambda block: two[: len(block)].copy_(block)


def _mean(graph: GraphView, rows: torch.Tensor, copy: Copy, centre: torch.Tensor | None) -> torch.Tensor:
    """The mean over all vertices, of squares from a centre on where one is given: sums over blocks, then over ranks."""
    owned = rows[: graph.num_owned]
    total = torch.zeros(rows.shape[1], dtype=copy(rows[:0]).dtype)
    for block in blocks(len(owned), BLOCK_ROWS):
        wide = copy(owned[block])
        total += wide.sum(0) if centre is None else wide.sub_(centre).square_().sum(0)
    everywhere = sum_over_ranks(graph.transport.comm, total.numpy())
    return torch.from_numpy(np.asarray(everywhere)) / graph.num_global_nodes


def _made(
    call: Call, rows: torch.Tensor, block: slice, numbers: Sequence, room: Callable, epilogue: Epilogue | None = None
) -> torch.Tensor:
    """y of a block of rows; epilogue: of the block."""
    centre, scale, offset = numbers
    normed: torch.Tensor = room(rows[block]).sub_(centre).mul_(scale).add_(offset)
    if not call.epilogue.is_empty:
        follows = rows_of(call.epilogue, block) if epilogue is None else epilogue
        activated(call.graph, normed, None, None, follows, in_place=True)
    return normed


def _grads(outputs: list[torch.Tensor], given: list[torch.Tensor], leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    """Gradients of small numbers; 0 where there is no way from a leaf to them."""
    outs = [(one, grad) for one, grad in zip(outputs, given, strict=True) if one.requires_grad]
    if not outs:
        return [torch.zeros_like(one) for one in leaves]
    made, grads = zip(*outs, strict=True)
    found = torch.autograd.grad(made, leaves, grads, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, found, strict=True)]
