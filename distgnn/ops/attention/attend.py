"""Graph attention with what follows it as one differentiable function: nothing is stored per arc, and no r.

    r = x W      s[v, h] = <r[v, h], left[h]>      t[v, h] = <r[v, h], right[h]>
    z[v, h] = sum over arcs (u -> v) of a(u, v, h) r[u, h],    a = softmax over u of leaky_relu(s[u, h] + t[v, h])
    y = dropout(relu(norm(z + bias)))

    owned rows r and scores -> halos; each rank: partial (z, maximum, sum) of every target copy
    target halos' partial results -> owners, merged in the order of ranks, divided by the sum
    backward: owners' (dz, maximum, sum, <dz, z>) -> target halos; weights are computed again; halos' shares are added

<dz, z> is taken from the result, since dy y = dz (z + bias) wherever ReLU and mask let through: z itself is not kept.
Nor is r, a product that is made again from x.

Legend: O owned rows, S / T source and target halos, H heads, F features per head, I columns in.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from distgnn import kernels
from distgnn.ops.aggregation.convolve import NOTHING, ONCE
from distgnn.ops.aggregation.halo import as_array, onto_owners, with_halos
from distgnn.ops.aggregation.partials import received_by_rank
from distgnn.ops.dense.activation import After, Before, activated, activated_backward
from distgnn.ops.dense.products import product, sum_of_products, weight_gradient
from distgnn.ops.edges.on_arcs import check_update


@dataclass(frozen=True)
class Heads:
    """How attention is paid. `then`, `alone`: as in `convolve.Terms`; mean: y is the mean over heads, and no more."""

    num_heads: int
    slope: float = 0.2
    then: After = NOTHING
    alone: bool = False
    mean: bool = False


def attend(
    graph,
    feats: torch.Tensor,
    weight: torch.Tensor,
    attn: torch.Tensor,
    bias: torch.Tensor | None,
    heads: Heads,
    norm: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> torch.Tensor:
    """Attention over the in-arcs of each vertex and what follows it.

    Collective: yes, and again in the backward pass.

    Args:
        feats: owned rows [O, I]; float32, float64 or bfloat16; or `SparseRows`.
        weight: W, [I, H * F]; attn: left and right, [2, H * F]; float32 for bfloat16 rows.
        bias: [H * F] or None; norm: (gamma, beta) [H * F] of a layer norm, or None.

    Returns: [O, H * F], or [O, F] as the mean over heads, in the dtype of `feats`; float32 for bfloat16 rows that
        nothing follows. Vertices without in-arcs have z = 0.

    Notes: memory O * H * (2 F + 4) and as much for halos, whatever the number of arcs. The backward pass can run once.
    """
    check_update(graph)
    gamma, beta = norm or (None, None)
    if heads.mean and not (norm is None and heads.then.nothing):
        raise ValueError("the mean over heads is the last step: leave out the norm and what follows")
    return _Attend.apply(feats, weight, attn, bias, gamma, beta, graph, heads)


@dataclass
class _Kept:
    """What the backward pass needs; `halos` [S, H, F] are r there, the scores at both ends of arcs are with halos."""

    feats: torch.Tensor
    weights: tuple[torch.Tensor, torch.Tensor]
    bias: torch.Tensor | None
    norm: tuple | None
    before: Before
    halos: np.ndarray
    scores: tuple[np.ndarray, np.ndarray]
    maximum: np.ndarray
    sums: np.ndarray


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feats, weight, attn, bias, gamma, beta, graph, heads):
        ctx.graph, ctx.heads = graph, heads
        rows = product(graph, feats, weight)
        last = heads.then.nothing and gamma is None
        z, maximum, sums, halos, ends = _attention(graph, rows, attn, heads, narrow=not last)
        del rows
        dtype = z.dtype if last else feats.dtype
        norm = None if gamma is None else (gamma.detach(), beta.detach())
        out, stats = z, None
        if heads.mean:
            out = _mean(graph, z, bias, heads.num_heads)
            z = z if z.dtype == feats.dtype else graph.buffers.empty(*z.shape, feats.dtype).copy_(z)
        elif bias is not None or not last:
            out, stats = activated(graph, z, bias, norm, heads.then, in_place=norm is None, dtype=dtype)
        bias = None if bias is None else bias.detach()
        before = Before(z if heads.mean else out.detach(), z if norm is not None else None, stats)
        weights = weight.detach(), attn.detach()
        ctx.kept = _Kept(feats.detach(), weights, bias, norm, before, halos, ends, maximum, sums)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        kept, ctx.kept = ctx.kept, None
        if kept is None:
            raise RuntimeError(ONCE)
        graph, heads, (weight, attn) = ctx.graph, ctx.heads, kept.weights
        through = _through_mean if heads.mean else _through_activation
        grads, dots, *more = through(ctx, kept, grad)
        del grad
        rows = product(graph, kept.feats, weight)
        grad_rows, grad_scores = _through_attention(graph, kept, rows, grads, dots, heads)
        del grads
        outer = as_array(grad_rows), as_array(attn), grad_scores, as_array(rows)
        grad_attn = torch.from_numpy(kernels.head_outer(*outer))
        del rows, outer
        grad_weight = weight_gradient(kept.feats, grad_rows)
        grad_feats = None
        if ctx.needs_input_grad[0]:
            over = grad_rows if grad_rows.shape == kept.feats.shape else None
            grad_feats = sum_of_products(graph, [(grad_rows, weight.T)], over)
        return grad_feats, grad_weight, grad_attn, *more, None, None


def _arcs(graph) -> tuple:
    """(indptr, indices) by target copy and by source copy."""
    if graph.num_ranks == 1:
        blocks = graph.forward_arcs.arcs.owned_owned, graph.backward_arcs(weighted=False).arcs.owned_owned
        return tuple((block.indptr, block.indices) for block in blocks)
    groups = graph.local_arcs.grouped
    return tuple((groups[role].indptr, groups[role].others) for role in ("target", "source"))


def _attention(graph, rows: torch.Tensor, attn: torch.Tensor, heads: Heads, narrow: bool):
    """(z [O, H * F], maximum, sums [O, H], rows of source halos [S, H, F], scores of copies at both ends).

    Args: narrow: z may have the dtype of rows; what is merged has not.
    """
    count, owned = heads.num_heads, graph.num_owned
    left, right = (kernels.head_dots(as_array(rows), as_array(attn[end : end + 1]), count) for end in (0, 1))
    sources = with_halos(graph, as_array(rows), "source")
    sources = sources.reshape(len(sources), count, rows.shape[1] // count)
    ends = with_halos(graph, left, "source"), with_halos(graph, right, "target")
    alone = graph.num_ranks == 1
    z = graph.buffers.empty(len(ends[1]), rows.shape[1], rows.dtype if narrow and alone else attn.dtype)
    out = as_array(z).reshape(len(z), count, rows.shape[1] // count)
    attention = kernels.attention if alone else kernels.attention_partial
    with graph.transport.counters.timing("aggregate_seconds"):
        _, maximum, sums = attention(*_arcs(graph)[0], sources, *ends, slope=heads.slope, out=out)
    if not alone:
        _merge(graph, out, maximum, sums)
        kernels.finish_attention(out[:owned], sums[:owned])
    return z[:owned], maximum[:owned], sums[:owned], sources[owned:].copy(), ends


def _merge(graph, out: np.ndarray, maximum: np.ndarray, sums: np.ndarray) -> None:
    """Target halos' partial results into those of owned rows, in place."""
    owned, width = graph.num_owned, out.shape[1] * out.shape[2]
    flat_out = out.reshape(len(out), width)  # not -1: a rank may have no copies at all
    halos = np.concatenate([part[owned:] for part in (flat_out, maximum, sums)], axis=1)
    mine = out[:owned], maximum[:owned], sums[:owned]
    for rows, partial in received_by_rank(graph, halos, "target"):
        theirs = np.split(partial, [width, width + out.shape[1]], axis=1)
        kernels.merge_attention(*mine, rows, theirs[0].reshape(len(rows), *out.shape[1:]), *theirs[1:])


def _mean(graph, z: torch.Tensor, bias: torch.Tensor | None, count: int) -> torch.Tensor:
    """The mean over heads of z [O, H * F] + bias, [O, F]."""
    width = z.shape[1] // count
    out = graph.buffers.empty(len(z), width, z.dtype)
    torch.mean(z.view(len(z), count, width), 1, out=out)
    return out if bias is None else out.add_(bias.view(count, width).mean(0))


def _through_mean(ctx, kept: _Kept, grad: torch.Tensor) -> tuple:
    """(dz [O, H * F] in the dtype of feats, <dz, z> [O, H], gradients of bias, gamma, beta)."""
    graph, count = ctx.graph, ctx.heads.num_heads
    share = torch.div(grad, count, out=graph.buffers.empty(*grad.shape, grad.dtype))
    grads = graph.buffers.empty(len(grad), count * grad.shape[1], kept.feats.dtype)
    grads.view(len(grad), count, grad.shape[1]).copy_(share[:, None])
    dots = kernels.head_dots(as_array(grads), as_array(kept.before.out), count)
    kept.before = None
    return grads, dots, None if kept.bias is None else share.sum(0).repeat(count), None, None


def _through_activation(ctx, kept: _Kept, grad: torch.Tensor) -> tuple:
    """As `_through_mean`, through bias, norm, ReLU and dropout."""
    graph, heads, count = ctx.graph, ctx.heads, ctx.heads.num_heads
    grad = grad.contiguous()
    last = heads.then.nothing and kept.norm is None
    dots = None if kept.norm is not None else kernels.head_dots(as_array(grad), as_array(kept.before.out), count)
    if last:
        grads, more = grad, (None if kept.bias is None else grad.sum(0), None, None)
    else:
        grads, *more = activated_backward(graph, grad, kept.before, kept.bias, kept.norm, heads.then, heads.alone)
        more[0] = more[0] if kept.bias is not None else None
    if kept.norm is not None:
        dots = kernels.head_dots(as_array(grads), as_array(kept.before.rows), count)
    elif kept.bias is not None:
        dots -= kernels.head_dots(as_array(grads), as_array(kept.bias[None]), count)
    kept.before = None
    return grads.to(kept.feats.dtype), dots, *more


def _through_attention(graph, kept: _Kept, rows: torch.Tensor, grads: torch.Tensor, dots: np.ndarray, heads: Heads):
    """(gradient of rows r [O, H * F] in the dtype of feats, gradients of scores [2, O, H])."""
    shape = kept.halos.shape[1:]
    sources = as_array(rows).reshape(len(rows), *shape)
    sources = np.concatenate([sources, kept.halos]) if len(kept.halos) else sources
    state = np.concatenate([kept.maximum, kept.sums, dots], axis=1)
    state = [np.ascontiguousarray(part) for part in np.split(with_halos(graph, state, "target"), 3, axis=1)]
    targets = with_halos(graph, as_array(grads), "target")
    targets = targets.reshape(len(targets), *shape)
    wide = torch.from_numpy(dots).dtype if graph.num_ranks > 1 else grads.dtype
    out = graph.buffers.empty(len(sources), shape[0] * shape[1], wide)
    arguments = sources, *kept.scores, targets, *state
    with graph.transport.counters.timing("aggregate_seconds"):
        _, left, right = kernels.attention_backward(
            *_arcs(graph)[1], *arguments, slope=heads.slope, grad_feats=as_array(out).reshape(len(out), *shape)
        )
    if graph.num_ranks > 1:
        out = torch.from_numpy(onto_owners(graph, as_array(out), "source")).to(grads.dtype)
        left, right = onto_owners(graph, left, "source"), onto_owners(graph, right, "target")
    return out, np.stack([left, right])
