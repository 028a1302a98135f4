"""A linear convolution and what follows it as one differentiable function, with as little stored as its gradient needs.

    z = x Ws + (A x) Wn        y = dropout(relu(norm(z + bias)))        A: spmm with scales, edge weights, loops

Legend: O rows, I columns in, D columns out, g = dL/dz, t = A' g (the transposed aggregation).

    dWs = x' g        dWn = (A x)' g = x' t        dx = g Ws' + t Wn' = g Ws' + A' (g Wn')

The plan decides where the aggregation runs and what is saved; the first row that fits is taken:

    x, layer                                            plan            z              saved   dWn        dx
    dense, no gradient; I <= D or the graph's features  CONSTANT        .. + (A x) Wn  A x     (A x)' g   -
    sparse, whose sums are kept (cluster batches)       CONSTANT        the same
    sparse, or I > D                                    PRODUCT_FIRST   .. + A (x Wn)  -       x' t       .. + t Wn'
    I < D, or late rows, or products never first        KEEP_AGGREGATE  .. + (A x) Wn  A x     (A x)' g   .. + A'(g Wn')
    I = D                                               AGGREGATE_ONLY  .. + (A x) Wn  -       x' t       .. + t Wn'

The narrower row is the one that travels. Late rows (a delayed algorithm) make A x a sum of rows of several epochs, and
its gradient is that of what was used: x' t would be another one. With `transform_first` off, the paper's form, products
of dense rows are never first. x is kept in any case, and y where ReLU or dropout follow, without a norm: it says what
they let through. With a norm z is kept, not y. How long x and y live in a stack says `rowwise/chain.py`. Constant rows
are aggregated by `spmm`, which keeps the result over epochs.

x Ws, x' g and g Ws' need no remote data: where an aggregation waits for messages they overlap it. The plans of the
backward pass are in convolve_gradient.py.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple, cast

import torch

from distgnn.ops.aggregation.aggregator import Scales
from distgnn.ops.aggregation.convolve_gradient import Gradients, aggregate_in, goes_over
from distgnn.ops.aggregation.spmm import SelfLoops, spmm
from distgnn.ops.function import GraphView, operator
from distgnn.ops.rowwise.activation import (
    NO_EPILOGUE,
    Epilogue,
    Norm,
    SavedEpilogue,
    activated,
    activated_again,
    activated_backward,
    column_sums,
    finish,
    rows_of,
)
from distgnn.ops.rowwise.chain import Rows, apply, tensor_of
from distgnn.ops.rowwise.layer import PLAIN, Call, Given, Kept, Layer, Room
from distgnn.ops.rowwise.products import PieceRows, Work, add_product, product, product_pieces, sum_of_products
from distgnn.ops.rowwise.sparse_rows import SparseRows


class Plan(Enum):
    """Where the aggregation of a convolution runs, and what is saved: the table above."""

    CONSTANT = auto()
    PRODUCT_FIRST = auto()
    KEEP_AGGREGATE = auto()
    AGGREGATE_ONLY = auto()


@dataclass(frozen=True)
class ConvSpec:
    """How a convolution aggregates, and what follows it.

    Args: scales: (of sources, of targets) or None each; edge_weight: [A] without gradient, or None; epilogue: what
        follows; loops: factors of each vertex's own row, which the aggregation adds; remat: in a chain, of constant
        rows, z and y are made again from x and A x, which are kept anyway.

    Example:
        >>> scale = graph.degree_scale("in", -1)
        >>> spec = dg.ops.ConvSpec((None, scale))  # the mean of neighbours
        >>> dg.ops.convolve(graph, graph.feats, torch.ones(8, 4), None, None, spec).shape
        torch.Size([60, 4])
    """

    scales: Scales
    edge_weight: torch.Tensor | None = None
    epilogue: Epilogue = NO_EPILOGUE
    loops: SelfLoops | None = None
    remat: bool = False


@operator
def convolve(
    graph: GraphView,
    feats: torch.Tensor | SparseRows | Rows,
    neigh: torch.Tensor,
    own: torch.Tensor | None,
    bias: torch.Tensor | None,
    spec: ConvSpec,
    norm: Norm | None = None,
) -> torch.Tensor:
    """z and what follows it.

    Collective: yes, and again in the backward pass.

    Args:
        feats: the model's rows [O, I]; float32, float64 or bfloat16; or `SparseRows`.
        neigh, own: weights [I, D] of neighbours and of the vertex itself (or None), in float32 for bfloat16 rows.
        bias: [D] or None. norm: (gamma, beta) [D] of a layer norm, or None.

    Returns: [O, D] in the dtype of `feats`; float32 for bfloat16 rows that nothing follows (logits).

    Notes: the backward pass gives up what it no longer needs on its way. Run a second time, or after its result was
        written to in place, it makes that again, exchanges included.

    Example:
        >>> spec = dg.ops.ConvSpec((None, None))
        >>> out = dg.ops.convolve(graph, graph.feats, torch.eye(8), None, None, spec)
        >>> torch.allclose(out, dg.ops.spmm(graph, graph.feats))
        True
    """
    plan, rows = choose_plan(graph, feats, *neigh.shape), tensor_of(feats)
    aggregated: torch.Tensor | None = None
    site = None
    if plan is not Plan.CONSTANT:
        site = graph.next_site()
    elif not isinstance(rows, SparseRows) or rows.sums is None:
        aggregated = spmm(graph, rows, spec.edge_weight, *spec.scales, spec.loops)
    elif spec.loops is None:
        aggregated = rows.sums(spec.edge_weight, spec.scales)
    else:
        raise ValueError("sums that a batch keeps have no self-loops: multiply first, and add loops with spmm")
    del rows
    call = Call(graph, spec.epilogue, torch.is_grad_enabled(), spec, site, plan)
    return apply(_Convolve, call, feats, aggregated, neigh, own, bias, *(norm or (None, None)))


def choose_plan(graph: GraphView, feats: torch.Tensor | SparseRows | Rows, in_feats: int, out_feats: int) -> Plan:
    """The first row of the table above that fits. Collective: yes."""
    needs_grad, rows = feats.requires_grad and torch.is_grad_enabled(), tensor_of(feats)
    if isinstance(rows, SparseRows) and rows.sums is not None:
        return Plan.CONSTANT
    narrows = graph.narrows(in_feats, out_feats)
    if not isinstance(rows, SparseRows) and not needs_grad and (not narrows or graph.is_input(rows)):
        return Plan.CONSTANT
    if isinstance(rows, SparseRows) or narrows:
        return Plan.PRODUCT_FIRST
    if in_feats < out_feats or not graph.aggregates_exactly or not graph.transform_first:
        return Plan.KEEP_AGGREGATE
    return Plan.AGGREGATE_ONLY


@dataclass
class _Kept(Kept):
    aggregated: torch.Tensor | None


class _Convolve(Layer):
    @staticmethod
    def run(feats, aggregated, neigh, own, bias, gamma, beta, call: Call, room: Room) -> tuple[torch.Tensor, _Kept]:  # type: ignore[no-untyped-def]
        is_last = call.epilogue.is_empty and gamma is None and feats.dtype == torch.bfloat16
        dtype = torch.float32 if is_last else feats.dtype  # logits of bfloat16 rows
        norm = None if gamma is None else (gamma, beta)
        z, made = _FORWARD[call.plan](call, _Operands(feats, aggregated, neigh, own, dtype), room)
        kept = made if call.plan is Plan.KEEP_AGGREGATE else None
        del made  # its buffer is free for y
        out, before = finish(call, z, bias, norm, room)
        return out, _Kept(before, kept)

    @staticmethod
    def again(call: Call, source: Any, inputs: Any, out: torch.Tensor, kept: _Kept) -> PieceRows | None:
        """From z; of constant rows under remat from x and A x: products of some rows, and what follows."""
        feats, aggregated, neigh, own, bias, gamma, beta = inputs
        plain = all(type(one) in PLAIN for one in (feats, aggregated))
        if not (call.how.remat and call.needs_grad and call.plan is Plan.CONSTANT and plain):
            return activated_again(call, inputs, out, kept.epilogue)
        graph, epilogue = call.graph, call.epilogue

        def make(rows: slice) -> torch.Tensor:
            pairs = [*([] if own is None else [(source[rows], own)]), (aggregated[rows], neigh)]
            norm = None if gamma is None else (gamma, beta)
            return activated(graph, sum_of_products(graph, pairs), bias, norm, rows_of(epilogue, rows), True)[0]

        if kept.epilogue is not None:
            kept.epilogue = SavedEpilogue(None, None, kept.epilogue.stats)
        return PieceRows(make, out.shape, out.dtype)

    @staticmethod
    def backward(call: Call, given: Given) -> tuple:
        (feats, aggregated, neigh, own, bias, gamma, beta), kept, grad = given.take()
        norm = None if gamma is None else (gamma, beta)
        aggregated, before = kept.aggregated if aggregated is None else aggregated, kept.epilogue
        del kept
        if before is not None and before.is_made_again:
            z, _ = _constant(call, _Operands(feats, aggregated, neigh, own, feats.dtype), Room())
            before = SavedEpilogue(None, z, before.stats)
            if norm is None:
                before = SavedEpilogue(activated(call.graph, z, bias, None, call.epilogue, True)[0])
            del z
        more: list[Any] = [None, None, None]
        grad = grad.contiguous()
        if before is None:
            more[0] = column_sums(grad) if bias is not None else None
            grads = grad.to(feats.dtype)
        else:
            grads, *more = activated_backward(call.graph, grad, before, bias, norm, call.epilogue, given.is_ours)
        more[0] = more[0] if bias is not None else None
        is_ours = before is not None or given.is_ours
        found = Gradients(call, feats, aggregated, neigh, own, grads, is_ours, given.needs[0])
        del grad, before, aggregated, feats, grads
        keeps = call.plan in (Plan.CONSTANT, Plan.KEEP_AGGREGATE)
        grad_feats = found.from_aggregate() if keeps else found.from_rows()
        return grad_feats, None, found.of_neigh, found.of_own, *more


# --- forward, a function per plan: (z, the aggregate to save or None) ------------------------------------------


class _Operands(NamedTuple):
    """x, A x where it is known already, Wn, Ws, and the dtype of z."""

    feats: Any  # torch.Tensor or SparseRows
    aggregated: torch.Tensor | None
    neigh: torch.Tensor
    own: torch.Tensor | None
    dtype: torch.dtype


def _constant(call: Call, x: _Operands, room: Room) -> tuple[torch.Tensor, torch.Tensor | None]:
    aggregated = cast(torch.Tensor, x.aggregated)
    fits = x.dtype == torch.float32 and x.neigh.shape[0] == x.neigh.shape[1] and type(aggregated) is torch.Tensor
    # Of a hidden layer in evaluation: nobody keeps A x, and z takes its place.
    is_ours = not call.needs_grad and fits and not call.graph.constants.holds(aggregated)
    over = aggregated if is_ours else None
    return _add_up(call.graph, x, aggregated, over), aggregated


def _product_first(call: Call, x: _Operands, room: Room) -> tuple[torch.Tensor, None]:
    graph = call.graph
    if x.own is not None and _overlaps(graph, x):
        z, work = _own_product_in_pieces(graph, x.feats, x.own)
        return z.add_(aggregate_in(call, product(graph, x.feats, x.neigh), work)), None
    rows = product(graph, x.feats, x.neigh)
    z = aggregate_in(call, rows, dtype=x.dtype)
    del rows  # its buffer is free for the next result
    if x.own is not None:
        add_product(graph, x.feats, x.own, z)
    return z, None


def _aggregate_first(call: Call, x: _Operands, room: Room) -> tuple[torch.Tensor, torch.Tensor]:
    """z and A x. Where nobody needs A x later, and x has gone, z takes the place of x, and y that of A x."""
    graph, is_only = call.graph, call.plan is Plan.AGGREGATE_ONLY
    if x.own is not None and _overlaps(graph, x):
        place = room.take(x.feats) if is_only and goes_over(call, x.feats, x.own) else None
        z, work = _own_product_in_pieces(graph, x.feats, x.own, place)
        aggregated = aggregate_in(call, x.feats, work)
        add_product(graph, aggregated, x.neigh, z)
        if place is not None:
            room.rows = aggregated
        return z, aggregated
    aggregated = aggregate_in(call, x.feats)
    # A x is not needed later: z takes its place. In float32 only: other dtypes go by blocks, which would cost time.
    over = aggregated if is_only and x.dtype == torch.float32 else None
    return _add_up(graph, x, aggregated, over), aggregated


def _add_up(graph: GraphView, x: _Operands, aggregated: torch.Tensor, over: torch.Tensor | None = None) -> torch.Tensor:
    """x Ws + (A x) Wn; over: the tensor to write it to."""
    if x.dtype == x.feats.dtype and not isinstance(aggregated, SparseRows):
        own_pair = [] if x.own is None else [(x.feats, x.own)]
        return sum_of_products(graph, [*own_pair, (aggregated, x.neigh)], over)
    z = product(graph, aggregated, x.neigh).to(x.dtype)
    if x.own is not None:
        add_product(graph, x.feats, x.own, z)
    return z


def _overlaps(graph: GraphView, x: _Operands) -> bool:
    """Is the product of a vertex's own row made while messages travel?"""
    return not isinstance(x.feats, SparseRows) and x.dtype == x.feats.dtype and graph.waits_for_rows


def _own_product_in_pieces(
    graph: GraphView, feats: torch.Tensor, own: torch.Tensor, room: torch.Tensor | None = None
) -> tuple[torch.Tensor, Work]:
    z = graph.buffers.empty(len(feats), own.shape[1], feats.dtype) if room is None else room
    return z, product_pieces(graph, feats, own, z)


_FORWARD = {
    Plan.CONSTANT: _constant,
    Plan.PRODUCT_FIRST: _product_first,
    Plan.KEEP_AGGREGATE: _aggregate_first,
    Plan.AGGREGATE_ONLY: _aggregate_first,
}
