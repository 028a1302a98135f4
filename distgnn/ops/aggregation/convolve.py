"""A linear convolution and what follows it as one differentiable function, with as little stored as its gradient needs.

    z = x Ws + (A x) Wn        y = dropout(relu(norm(z + bias)))        A: spmm with its scales and edge weights

Legend: O rows, I columns in, D columns out, g = dL/dz, t = A' g (the transposed aggregation).

    dWs = x' g        dWn = (A x)' g = x' t        dx = g Ws' + t Wn'

x Ws, x' g and g Ws' need no message: where the aggregation waits for some, they are done meanwhile (`meanwhile.py`).

So neither A x nor x Wn is kept: x is, which the layer before holds anyway, and y, which says what ReLU and dropout let
through. With a norm z is kept too. The aggregation runs where rows are narrower: before the product (I <= D) or after.
A layer that widens keeps A x instead (dx = g Ws' + A' (g Wn')), because g would be the wider row to send; so does one
of equal widths under a delayed algorithm, where A x has rows of other epochs and its gradient is that of what was used;
and every layer where products never come first (`transform_first` off, the paper's form).

Rows that need no gradient are aggregated by `spmm`, which keeps what is constant; sparse rows never are: x Wn is
summed over the non-zeros of x, and x' g over those of x transposed.
"""

from dataclasses import dataclass

import torch
from torch.autograd.function import once_differentiable

from distgnn.ops.aggregation.aggregator import Site
from distgnn.ops.aggregation.spmm import aggregate, spmm
from distgnn.ops.dense.activation import After, Before, activated, activated_backward
from distgnn.ops.dense.products import add_product, product, sum_of_products, weight_gradient
from distgnn.ops.dense.sparse_rows import SparseRows
from distgnn.ops.overlap import Work, product_pieces

NOTHING = After()
ONCE = (
    "the backward pass of a layer can run once, and retain_graph changes nothing: memory is given up on the way. Run "
    "the forward pass again, or add the losses up and call backward once"
)


@dataclass(frozen=True)
class Terms:
    """How a convolution aggregates, and what follows it.

    Args: scales: (of sources, of targets) or None each; edge_weight: [A] without gradient, or None; then: what follows;
        alone: nobody but this function sees the gradient of its result, which may be written over.
    """

    scales: tuple
    edge_weight: torch.Tensor | None = None
    then: After = NOTHING
    alone: bool = False


def convolve(
    graph,
    feats: torch.Tensor | SparseRows,
    neigh: torch.Tensor,
    own: torch.Tensor | None,
    bias: torch.Tensor | None,
    terms: Terms,
    norm: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> torch.Tensor:
    """z and what follows it.

    Collective: yes, and again in the backward pass.

    Args:
        feats: the model's rows [O, I]; float32, float64 or bfloat16; or `SparseRows`.
        neigh, own: weights [I, D] of neighbours and of the vertex itself (or None), in float32 for bfloat16 rows.
        bias: [D] or None. norm: (gamma, beta) [D] of a layer norm, or None.

    Returns: [O, D] in the dtype of `feats`; float32 for bfloat16 rows that nothing follows (logits).

    Notes: the backward pass can run once; it gives up what it no longer needs on its way.
    """
    needed = feats.requires_grad and torch.is_grad_enabled()
    aggregated = site = None
    dense = not isinstance(feats, SparseRows)
    if dense and not needed and (not graph.narrows(*neigh.shape) or graph.is_input(feats)):
        aggregated = spmm(graph, feats, terms.edge_weight, *terms.scales)
    else:
        site = graph.next_site()
    gamma, beta = norm or (None, None)
    return _Convolve.apply(feats, aggregated, neigh, own, bias, gamma, beta, graph, terms, site)


@dataclass
class _Kept:
    """What the backward pass needs."""

    feats: torch.Tensor
    aggregated: torch.Tensor | None
    weights: tuple[torch.Tensor, torch.Tensor | None]
    bias: torch.Tensor | None
    norm: tuple | None
    before: Before
    site: Site | None
    constant: bool


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feats, aggregated, neigh, own, bias, gamma, beta, graph, terms, site):
        ctx.graph, ctx.terms = graph, terms
        then, constant = terms.then, aggregated is not None
        last = then.nothing and gamma is None and feats.dtype == torch.bfloat16
        dtype = torch.float32 if last else feats.dtype
        sparse = isinstance(feats, SparseRows)
        first = sparse or (graph.narrows(*neigh.shape) and not constant)
        widens = neigh.shape[0] < neigh.shape[1] + (not graph.aggregates_exactly)
        keep = not (constant or first) and (widens or not graph.transform_first)
        apart = own is not None and not (constant or sparse) and dtype == feats.dtype and graph.waits_for_rows
        if apart:
            z, aggregated = _products_apart(graph, feats, neigh, own, terms, site, first)
        elif first:
            rows = product(graph, feats, neigh)
            z, _ = aggregate(graph, rows, terms.edge_weight, terms.scales, site, dtype=dtype)
            del rows
        elif not constant:
            aggregated, _ = aggregate(graph, feats, terms.edge_weight, terms.scales, site)
        if not apart and (first or dtype != feats.dtype):
            z = z if first else product(graph, aggregated, neigh).to(dtype)
            if own is not None:
                add_product(graph, feats, own, z)
        elif not apart:
            free = not (constant or keep) and neigh.shape[0] == neigh.shape[1]
            over = aggregated if free and dtype == torch.float32 else None  # others' blocks would cost time
            z = sum_of_products(graph, [*([] if own is None else [(feats, own)]), (aggregated, neigh)], over)
        aggregated = aggregated if constant or keep else None
        norm = None if gamma is None else (gamma.detach(), beta.detach())
        out, stats = z, None
        if bias is not None or norm is not None or not then.nothing:
            out, stats = activated(graph, z, bias, norm, then, in_place=norm is None)
        ctx.kept = _Kept(
            feats.detach(),
            aggregated,
            (neigh.detach(), None if own is None else own.detach()),
            None if bias is None else bias.detach(),
            norm,
            Before(out.detach(), z if norm is not None else None, stats),
            site,
            constant,
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        kept, ctx.kept = ctx.kept, None
        if kept is None:
            raise RuntimeError(ONCE)
        grads, *more = _through_activation(ctx, kept, grad.contiguous())
        del grad
        kept.before = None
        return (*_through_products(ctx, kept, grads), *more, None, None, None)


def _products_apart(graph, feats, neigh, own, terms: Terms, site: Site | None, first: bool) -> tuple:
    """z, with the product of a vertex's own row made while messages travel; and A x, None where x Wn is aggregated."""
    z = graph.buffers.empty(len(feats), own.shape[1], feats.dtype)
    work = product_pieces(graph, feats, own, z)
    rows = product(graph, feats, neigh) if first else feats
    aggregated, _ = aggregate(graph, rows, terms.edge_weight, terms.scales, site, meanwhile=work)
    if first:
        return z.add_(aggregated), None
    add_product(graph, aggregated, neigh, z)
    return z, aggregated


def _through_activation(ctx, kept: _Kept, grad: torch.Tensor) -> tuple:
    """Gradients of z, bias, gamma, beta."""
    then, dtype = ctx.terms.then, kept.feats.dtype
    if then.nothing and kept.norm is None:
        bias = grad.sum(0) if kept.bias is not None else None
        return grad.to(dtype), bias, None, None
    grads, bias, gamma, beta = activated_backward(
        ctx.graph, grad, kept.before, kept.bias, kept.norm, then, ctx.terms.alone
    )
    return grads, bias if kept.bias is not None else None, gamma, beta


def _through_products(ctx, kept: _Kept, grads: torch.Tensor) -> tuple:
    """Gradients of feats, aggregated (none), neigh, own."""
    graph, terms, (neigh, own) = ctx.graph, ctx.terms, kept.weights
    needed, found = ctx.needs_input_grad[0], {}
    work = [] if own is None else [lambda: found.update(own=weight_gradient(graph, kept.feats, grads))]
    if kept.constant:
        _do(work)
        return None, None, weight_gradient(graph, kept.aggregated, grads), found.get("own")
    if kept.aggregated is not None:
        work.append(lambda: found.update(neigh=weight_gradient(graph, kept.aggregated, grads)))
        grad_feats = None
        if not (needed and graph.waits_for_rows):
            work = _do(work)
            kept.aggregated = None
        if needed:
            rows = product(graph, grads, neigh.T)
            grad_feats, _ = _aggregate_backward(ctx, kept, rows, work)
            if own is not None:
                add_product(graph, grads, own.T, grad_feats)
        kept.aggregated = None
        return grad_feats, None, found["neigh"], found.get("own")
    apart = needed and own is not None and graph.waits_for_rows
    grad_feats = graph.buffers.empty(len(grads), own.shape[0], grads.dtype) if apart else None
    work = work + product_pieces(graph, grads, own.T, grad_feats) if apart else _do(work)
    turned, _ = _aggregate_backward(ctx, kept, grads, work)
    grad_neigh = weight_gradient(graph, kept.feats, turned)
    if apart:
        add_product(graph, turned, neigh.T, grad_feats)
    elif needed:
        ours = (kept.norm is not None or not terms.then.nothing) and grads.shape == kept.feats.shape
        pairs = [(turned, neigh.T), *([] if own is None else [(grads, own.T)])]
        grad_feats = sum_of_products(graph, pairs, over=grads if ours else None)
    return grad_feats, None, grad_neigh, found.get("own")


def _aggregate_backward(ctx, kept: _Kept, rows: torch.Tensor, work: Work) -> tuple:
    terms = ctx.terms
    return aggregate(ctx.graph, rows, terms.edge_weight, terms.scales, kept.site, backward=True, meanwhile=work)


def _do(work: Work) -> Work:
    """Do it now; nothing is left."""
    for piece in work:
        piece()
    return []
