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
from distgnn.ops.dense.activation import (
    BLOCK_ROWS,
    NO_EPILOGUE,
    Epilogue,
    SavedEpilogue,
    activated,
    activated_backward,
    rows_of,
)
from distgnn.ops.dense.made_again import MadeAgain, offer, taken
from distgnn.ops.entry import operator
from distgnn.ops.function import Function
from distgnn.ops.graph_view import GraphView

Small = torch.Tensor  # [D]
Copy = Callable[[torch.Tensor], torch.Tensor]


class _Call(NamedTuple):
    graph: GraphView
    norm: Any
    fixed: tuple[Small, Small] | None
    epilogue: Epilogue
    alone: bool


@operator
def column_norm(
    graph: GraphView,
    rows: torch.Tensor,
    norm: Any,
    parameters: Sequence[Small],
    *,
    fixed: tuple[Small, Small] | None = None,
    epilogue: Epilogue = NO_EPILOGUE,
    alone: bool = False,
    room: torch.Tensor | None = None,
) -> tuple[torch.Tensor, Small, Small]:
    """The norm of rows [V, D] over all vertices and what follows it; and the statistics m and q, without gradient.

    Collective: twice, and once in the backward pass; with `fixed` statistics not at all.

    Args:
        norm: one with `centre(m, parameters)`, which gives c, and `factors(q, parameters)`, which gives (s, b), of
            torch's operations on [D] numbers.
        parameters: of the norm, [D] each; fixed: (m, q) in place of those of `rows`; epilogue: what follows.
        alone: only this function uses `rows` and the gradient of its result. It may write over that gradient, and over
            rows that need none; the result is offered to be made again.
        room: where to write it.
    """
    offered: list = []
    call = _Call(graph, norm, fixed, epilogue, alone)
    again = taken(rows) if torch.is_grad_enabled() else None
    out, *statistics = _ColumnNorm.apply(rows.contiguous(), call, again, room, offered, *parameters)
    return offer(out, offered[0]) if alone and out.requires_grad else out, *statistics


class _ColumnNorm(Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: torch.Tensor,
        call: _Call,
        again: MadeAgain | None,
        room_of_out: torch.Tensor | None,
        offered: list,
        *parameters: torch.Tensor,
    ) -> tuple:
        ctx.call, ctx.needs = call, [one.requires_grad for one in parameters]
        plain, (copy, _) = rows.detach(), _room(rows)
        own = [one.detach() for one in parameters]
        fixed = None if call.fixed is None else [one.detach().clone() for one in call.fixed]
        mean = _mean(call, plain, copy, None) if fixed is None else fixed[0]
        centre = call.norm.centre(mean, own)
        square = _mean(call, plain, copy, centre) if fixed is None else fixed[1]
        scale, offset = call.norm.factors(square, own)
        over = call.alone and not rows.requires_grad and not torch.is_grad_enabled()
        if room_of_out is not None:
            out = room_of_out.detach()
        else:
            out = plain if over else call.graph.buffers.empty_like(plain)
        for block in blocks(len(plain), BLOCK_ROWS):
            out[block].copy_(_made(call, plain, block, (centre, scale, offset), copy))
        ctx.again = None if again is None else again.of(())
        kept = (rows,) if again is None else again.kept
        ctx.save_for_backward(mean, square, *parameters, *kept)
        offered.append(_again(call, plain, again, (centre, scale, offset)))
        ctx.mark_non_differentiable(mean, square)
        ctx.set_materialize_grads(False)
        return out, mean, square

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor | None, *unused: Any) -> tuple:
        (call, count), (mean, square, *others) = (ctx.call, len(ctx.needs)), ctx.saved_tensors
        parameters, kept = others[:count], others[count:]
        if grad is None:
            return *[None] * 5, *(None for _ in parameters)
        rows = kept[0] if ctx.again is None else ctx.again.of(kept).whole()
        rows, grad, (copy, other) = rows.detach(), grad.contiguous(), _room(rows)
        with torch.enable_grad():
            leaves = [one.detach().requires_grad_() for one in (mean, square, *parameters)]
            centre = call.norm.centre(leaves[0], leaves[2:])
            scale, offset = call.norm.factors(leaves[1], leaves[2:])
        c, s, b = (one.detach() for one in (centre, scale, offset))
        out = grad if call.alone else call.graph.buffers.empty_like(grad)
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
        of_square = _grads([scale], [moment], leaves[1:2])[0] * (call.fixed is None)
        of_centre = -s * total - 2 * of_square * (mean - c)
        of_mean, *of_parameters = _grads([centre, scale, offset], [of_centre, moment, total], [leaves[0], *leaves[2:]])
        if call.fixed is None:
            both = sum_over_ranks(call.graph.transport.comm, torch.stack([of_square, of_mean]).numpy())
            slope, constant = (
                torch.from_numpy(both) / call.graph.num_global_nodes * torch.tensor([[2.0], [1.0]], dtype=s.dtype)
            )
        for block in blocks(len(rows), BLOCK_ROWS):
            g = other(out[block]).mul_(s)
            if call.fixed is None and block.start < call.graph.num_owned:
                owned = slice(0, call.graph.num_owned - block.start)
                g[owned] += copy(rows[block][owned]).sub_(c).mul_(slope).add_(constant)
            out[block].copy_(g)
        needed = (one if needed else None for one, needed in zip(of_parameters, ctx.needs, strict=True))
        return out, None, None, None, None, *needed


def _again(call: _Call, rows: torch.Tensor, source: MadeAgain | None, numbers: tuple) -> MadeAgain:
    """The result, from `rows`, or from what those are made of."""
    parts = (rows,) if source is None else source.kept
    of_source, num_parts = None if source is None else source.of(()), len(parts)

    def make(kept: Any, block: slice) -> torch.Tensor:
        rows = kept[0] if of_source is None else of_source.of(kept[:num_parts])
        before = rows[block]
        out = call.graph.buffers.empty_like(before)
        wide = out if out.dtype != torch.bfloat16 else out.float()
        made = _made(call, before, slice(None), kept[-3:], wide.copy_, rows_of(call.epilogue, block))
        return out.copy_(made)

    numbers = tuple(one.detach() for one in numbers)
    return MadeAgain((*parts, *numbers), make, (rows.shape[0], rows.shape[1]), rows.dtype)


def _room(rows: torch.Tensor) -> tuple[Copy, Copy]:
    """Two functions that copy a block of rows in the dtype of sums. Each writes over its last copy: fresh memory would
    be faulted in."""
    dtype = torch.float32 if rows.dtype == torch.bfloat16 else rows.dtype
    one, two = torch.empty(2, min(BLOCK_ROWS, len(rows)), rows.shape[1], dtype=dtype)
    return lambda block: one[: len(block)].copy_(block), lambda block: two[: len(block)].copy_(block)


def _mean(call: _Call, rows: torch.Tensor, copy: Copy, centre: torch.Tensor | None) -> torch.Tensor:
    """The mean over all vertices, of squares from a centre on where one is given: sums over blocks, then over ranks."""
    owned = rows[: call.graph.num_owned]
    total = torch.zeros(rows.shape[1], dtype=copy(rows[:0]).dtype)
    for block in blocks(len(owned), BLOCK_ROWS):
        wide = copy(owned[block])
        total += wide.sum(0) if centre is None else wide.sub_(centre).square_().sum(0)
    everywhere = sum_over_ranks(call.graph.transport.comm, total.numpy())
    return torch.from_numpy(np.asarray(everywhere)) / call.graph.num_global_nodes


def _made(
    call: _Call, rows: torch.Tensor, block: slice, numbers: Sequence, room: Callable, epilogue: Epilogue | None = None
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
