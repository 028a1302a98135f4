"""Graph attention with what follows it as one differentiable function: nothing is stored per arc.

    r = x W      s[v, h] = <r[v, h], left[h]>      t[v, h] = <r[v, h], right[h]>
    z[v, h] = sum over arcs (u -> v) of a(u, v, h) r[u, h],    a = softmax over u of leaky_relu(s[u, h] + t[v, h])
    y = dropout(relu(norm(z + bias)))

    owned rows r and scores -> halos; each rank: partial (z, maximum, sum) of every target copy
    target halos' partial results -> owners, merged in the order of ranks, divided by the sum
    backward: owners' (dz, maximum, sum, <dz, z>) -> target halos; weights are computed again; halos' shares are added

With `loops` [O] every vertex has additional arcs to itself: its owner merges them like another
rank's partial result. A negative number takes arcs away that the graph has.

<dz, z> is taken from the result, since dy y = dz (z + bias) wherever ReLU and mask let through: z itself is not saved.
r is saved where making it again from x would take long (`KEPT_COLUMNS`), and of the mean over heads: a last layer's
backward pass comes first and would need r at once. The gradient of r is written over it, row by row; what scores add to
it is never written: see gradients.py.

Legend: O owned rows, S / T source and target halos, H heads, F features per head, I columns in.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.kernels.attention.attention import PARTS
from distgnn.ops.aggregation.halo import as_array, onto_owners, with_halos
from distgnn.ops.attention.gradients import ThroughScores, arcs_of, through_activation, through_mean
from distgnn.ops.edges.on_arcs import check_update
from distgnn.ops.function import GraphView, operator
from distgnn.ops.rowwise.activation import NO_EPILOGUE, Epilogue, Norm, SavedEpilogue, activated_again, finish
from distgnn.ops.rowwise.chain import Rows, apply
from distgnn.ops.rowwise.layer import Call, Given, Kept, Layer, Room
from distgnn.ops.rowwise.products import PieceRows, has_own_products, product, sum_of_products, whole

KEPT_COLUMNS = 128  # of x, from which on r is saved: a product's time for each number of r grows with them
KEPT_NARROW = 64  # the same of bfloat16 rows, whose memory is half


@dataclass(frozen=True)
class Heads:
    """The heads of an attention layer, and what follows it.

    Args: slope: of the leaky ReLU; epilogue: as in `convolve.ConvSpec`; mean: y is the mean over heads, without norm
        and epilogue; loops: arcs of each owned vertex to itself to add, of the dtype of `attn`.

    Example:
        >>> heads = dg.ops.Heads(2, mean=True)
        >>> dg.ops.attend(graph, graph.feats, torch.ones(8, 8), torch.ones(2, 8), None, heads).shape
        torch.Size([60, 4])
    """

    num_heads: int
    slope: float = 0.2
    epilogue: Epilogue = NO_EPILOGUE
    mean: bool = False
    loops: np.ndarray | None = None


@operator
def attend(
    graph: GraphView,
    feats: torch.Tensor | Rows,
    weight: torch.Tensor,
    attn: torch.Tensor,
    bias: torch.Tensor | None,
    heads: Heads,
    norm: Norm | None = None,
) -> torch.Tensor:
    """Attention over the in-arcs of each vertex and what follows it.

    Collective: yes, and again in the backward pass.

    Args:
        feats: owned rows [O, I]; float32, float64 or bfloat16; or `SparseRows`.
        weight: W, [I, H * F]; attn: left and right, [2, H * F]; float32 for bfloat16 rows.
        bias: [H * F] or None; norm: (gamma, beta) [H * F] of a layer norm, or None.

    Returns: [O, H * F], or [O, F] as the mean over heads, in the dtype of `feats`; float32 for bfloat16 rows that
        nothing follows. Vertices without in-arcs have z = 0.

    Notes: memory O * H * (2 F + 4), of a mean and where r is kept F more, and as much for halos, whatever the number of
        arcs. The backward pass can run again, as in `convolve`.

    Example:
        >>> weight, attn = torch.ones(8, 8), torch.ones(2, 8)
        >>> dg.ops.attend(graph, graph.feats, weight, attn, None, dg.ops.Heads(2)).shape
        torch.Size([60, 8])
    """
    check_update(graph)
    if heads.mean and not (norm is None and heads.epilogue.is_empty):
        raise ValueError("the mean over heads is the last step: leave out the norm and what follows")
    call = Call(graph, heads.epilogue, torch.is_grad_enabled(), heads)
    return apply(_Attend, call, feats, weight, attn, bias, *(norm or (None, None)))


@dataclass
class _Kept(Kept):
    """What the backward pass needs beside the inputs, which it puts here, too.

    Args: rows: r of all copies [O + S, H, F] if `_keeps_rows`, else of source halos; together: of a mean,
        memory that the gradient of feats is written over: of feats, [O, I], where z was written over them, or on one
        rank of z and, behind it, of r, [2 O, H * F].
    """

    rows: np.ndarray
    scores: tuple[np.ndarray, np.ndarray]
    maximum: np.ndarray
    sums: np.ndarray
    together: torch.Tensor | None
    # The inputs, in a backward pass:
    feats: Any = None
    weights: Any = None
    bias: torch.Tensor | None = None
    norm: Norm | None = None


class _Attend(Layer):
    @staticmethod
    def run(feats, weight, attn, bias, gamma, beta, call: Call, room: Room) -> tuple[torch.Tensor, _Kept]:  # type: ignore[no-untyped-def]
        graph, heads = call.graph, call.how
        last = heads.epilogue.is_empty and gamma is None
        norm = None if gamma is None else (gamma, beta)
        z, *found = _attention(graph, feats, weight, attn, heads, room, narrow=not last)
        if heads.mean:
            out, z = _mean(graph, z, bias, heads.num_heads, feats.dtype)
            return out, _Kept(SavedEpilogue(z), *found)
        out, before = finish(call, z, bias, norm, room, dtype=z.dtype if last else feats.dtype)
        return out, _Kept(before or SavedEpilogue(out.detach()), *found)

    @staticmethod
    def again(call: Call, source: Any, inputs: Any, out: torch.Tensor, kept: _Kept) -> PieceRows | None:
        return activated_again(call, inputs, out, kept.epilogue)

    @staticmethod
    def backward(call: Call, given: Given) -> tuple:
        (feats, weight, attn, bias, gamma, beta), saved, grad = given.take()
        saved.feats, saved.weights, saved.bias = feats, (weight, attn), bias
        saved.norm = None if gamma is None else (gamma, beta)
        graph, heads = call.graph, call.how
        before: Any = saved.epilogue
        saved.epilogue = None
        if heads.mean:
            grads, dots, *more = through_mean(call, saved, before, grad)
        else:
            grads, dots, *more = through_activation(call, saved, before, grad, given.is_ours)
        del before, grad
        grad_rows, grad_scores = _through_attention(graph, saved, grads, dots, heads)
        del grads
        through = ThroughScores(graph, saved.feats, *saved.weights)
        through.record(grad_rows, grad_scores, constant=not given.needs[0])
        grad_weight, grad_attn = through.of_parameters(grad_rows, grad_scores)
        of_feats = through.of_feats(grad_rows, grad_scores, saved.together) if given.needs[0] else None
        return of_feats, grad_weight, grad_attn, *more


def _attention(
    graph: GraphView, feats: Any, weight: torch.Tensor, attn: torch.Tensor, heads: Heads, room: Room, *, narrow: bool
) -> tuple:
    """(z [O, H * F], and of `_Kept`: rows, scores of copies at both ends, maximum, sums [O, H], together).

    Args: narrow: z may have the dtype of rows; what is merged has not.
    """
    count, owned, width = heads.num_heads, graph.num_owned, weight.shape[1]
    one_rank = graph.num_ranks == 1 and heads.loops is None
    side_by_side = heads.mean and one_rank and feats.dtype == attn.dtype
    together = over = None
    if side_by_side:
        together = _room_for_z(graph, room, feats, owned * width)
        if together is None:
            together = graph.buffers.empty(2 * owned, width, feats.dtype)
            over = together[owned:]
    rows = sum_of_products(graph, [(feats, weight)], over)
    left, right = kernels.head_scores(as_array(rows), as_array(attn), count)
    sources = with_halos(graph, as_array(rows), "source")
    sources = sources.reshape(len(sources), count, width // count)
    del rows  # with halos behind them, rows are another array
    ends = with_halos(graph, left, "source"), with_halos(graph, right, "target")
    dtype = feats.dtype if narrow and one_rank else attn.dtype
    num_copies = len(ends[1])
    if heads.mean and not side_by_side and heads.loops is None and dtype == feats.dtype:
        together = _room_for_z(graph, room, feats, num_copies * width)
    if together is None:
        z = graph.buffers.empty(num_copies, width, dtype)
    else:
        z = together.view(-1)[: num_copies * width].view(num_copies, width)
    out = as_array(z).reshape(len(z), count, width // count)
    attention: Any = kernels.attention if one_rank else kernels.attention_partial
    with graph.transport.counters.timing("aggregate_seconds"):
        _, maximum, sums = attention(*arcs_of(graph)[0], sources, *ends, slope=heads.slope, out=out)
    if not one_rank:
        _merge(graph, out, maximum, sums)
        if heads.loops is not None:  # arcs of vertices to themselves
            mine, times = (out[:owned], maximum[:owned], sums[:owned]), np.repeat(heads.loops[:, None], count, axis=1)
            of_loops = sources[:owned] * times[:, :, None], _leaky(left + right, heads.slope), times
            kernels.merge_attention(*mine, np.arange(owned), *of_loops)
        kernels.finish_attention(out[:owned], sums[:owned])
    kept = sources if _keeps_rows(feats, heads) else sources[owned:].copy()
    return z[:owned], kept, ends, maximum[:owned], sums[:owned], together


def _room_for_z(graph: GraphView, room: Room, feats: Any, numbers: int) -> torch.Tensor | None:
    """The memory of `feats` [O, I], where that is free and z of all copies, so many numbers, has room there.

    Notes: the gradient of feats is then made there in pieces, with the bits of the whole in our own products.
    """
    fits = type(feats) is torch.Tensor and numbers <= feats.numel() and has_own_products(graph, feats)
    return room.take(feats) if fits else None


def _keeps_rows(feats: Any, heads: Heads) -> bool:
    """Whether r of owned vertices is saved for the backward pass; of source halos it always is."""
    return heads.mean or feats.shape[1] >= (KEPT_NARROW if feats.dtype == torch.bfloat16 else KEPT_COLUMNS)


def _merge(graph: GraphView, out: np.ndarray, maximum: np.ndarray, sums: np.ndarray) -> None:
    """Target halos' partial results into the owned rows' results, in place."""
    owned, width = graph.num_owned, out.shape[1] * out.shape[2]
    flat_out = out.reshape(len(out), width)  # not -1: a rank may have no copies at all
    halos = np.concatenate([part[owned:] for part in (flat_out, maximum, sums)], axis=1)
    mine = out[:owned], maximum[:owned], sums[:owned]
    for rows, partial in graph.exchange.reduce_by_rank(np.ascontiguousarray(halos)):
        theirs = np.split(partial, [width, width + out.shape[1]], axis=1)
        kernels.merge_attention(*mine, rows, theirs[0].reshape(len(rows), *out.shape[1:]), *theirs[1:])


def _leaky(scores: np.ndarray, slope: float) -> np.ndarray:
    return np.where(scores > 0, scores, slope * scores)


def _mean(
    graph: GraphView, z: torch.Tensor, bias: torch.Tensor | None, count: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean over heads of z [O, H * F] + bias, [O, F], and z in `dtype`."""
    width = z.shape[1] // count
    out = graph.buffers.empty(len(z), width, z.dtype)
    short = z if z.dtype == dtype else graph.buffers.empty_like(z, dtype)
    offset = None if bias is None else as_array(bias.view(count, width).mean(0))
    kernels.head_mean(as_array(z), count, offset, out=as_array(out), short=None if short is z else as_array(short))
    return out, short


def _through_attention(
    graph: GraphView, saved: _Kept, grads: torch.Tensor, dots: np.ndarray, heads: Heads
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of rows r, but for what scores add, [O, H * F] in the dtype of feats, and of both scores [O, 2 H]."""
    shape, weight = saved.rows.shape[1:], saved.weights[0]
    # r of owned vertices and source halos, [O + S, H * F], in the dtype of feats, to be written over
    kept = saved.rows.reshape(len(saved.rows), weight.shape[1])
    saved.rows = saved.rows[:0].copy()  # nobody else holds on to them
    if _keeps_rows(saved.feats, heads):
        rows = torch.from_numpy(kept).view(saved.feats.dtype)
    else:
        rows = product(graph, whole(saved.feats), weight)
        rows = torch.from_numpy(np.concatenate([as_array(rows), kept])).view(rows.dtype) if len(kept) else rows
    del kept
    of_loops = None if heads.loops is None else _through_loops(saved, rows[: len(dots)], grads, dots, heads)
    state: Any = saved.maximum, saved.sums, dots
    if graph.num_ranks > 1:  # of owned vertices, and of target halos behind them, in one exchange
        state = np.split(with_halos(graph, np.concatenate(state, axis=1), "target"), 3, axis=1)
        state = list(map(np.ascontiguousarray, state))
    targets = with_halos(graph, as_array(grads), "target")
    wide = torch.from_numpy(dots).dtype if graph.num_ranks > 1 else grads.dtype
    # r is needed no more, and the kernel may write a row's gradient over it; partial sums of bfloat16 rows are wider.
    out = rows if rows.dtype == wide else graph.buffers.empty_like(rows, wide)
    sources, places = (as_array(one).reshape(len(one), *shape) for one in (rows, out))
    targets = targets.reshape(len(targets), 1 if heads.mean else shape[0], shape[1])
    arguments = sources, *saved.scores, targets, *state
    beside = np.empty((len(out), 2 * shape[0]), dots.dtype) if graph.num_ranks == 1 else None
    where: Any = {"grad_feats": places, "grad_scores": beside, "room": _room(graph, saved, len(targets), dots)}
    with graph.transport.counters.timing("aggregate_seconds"):
        _, left, right = kernels.attention_backward(*arcs_of(graph)[1], *arguments, slope=heads.slope, **where)
    if graph.num_ranks > 1:
        out = torch.from_numpy(onto_owners(graph, as_array(out), "source")).to(grads.dtype)
        left, right = onto_owners(graph, left, "source"), onto_owners(graph, right, "target")
    if of_loops is not None:
        weighted = grads.view(len(out), grads.shape[1] // shape[1], shape[1]), torch.from_numpy(of_loops[0])[:, :, None]
        out.view(len(out), *shape).addcmul_(*weighted)
        left += of_loops[1]
        right += of_loops[1]
    return out, torch.from_numpy(np.concatenate([left, right], axis=1) if beside is None else beside)


def _room(graph: GraphView, saved: _Kept, num_targets: int, dots: np.ndarray) -> np.ndarray:
    """Memory for the parts of the targets' sums: where z was, if that is large enough."""
    shape, room = (PARTS * num_targets, dots.shape[1]), 0
    if saved.together is not None:  # r, whose gradient is made meanwhile, may be its second half
        room = saved.together.numel() // max(1, len(saved.together) // max(1, len(dots)))
    if saved.together is not None and shape[0] * shape[1] <= room:
        return as_array(saved.together).reshape(-1)[: shape[0] * shape[1]].reshape(shape)
    return as_array(graph.buffers.empty(*shape, torch.from_numpy(dots).dtype))


def _through_loops(saved: _Kept, rows: torch.Tensor, grads: torch.Tensor, dots: np.ndarray, heads: Heads) -> tuple:
    """Of arcs of vertices to themselves: (weight times number, gradient of the sum of both scores), [O, H] each."""
    owned = len(rows)
    pre = saved.scores[0][:owned] + saved.scores[1][:owned]
    loops: Any = heads.loops
    # sums are 0 only where there is neither an arc nor a loop
    weights = loops[:, None] * np.exp(_leaky(pre, heads.slope) - saved.maximum) / np.maximum(saved.sums, 1e-30)
    width = rows.shape[1] // heads.num_heads
    shared = grads.view(owned, grads.shape[1] // width, width)  # one row for all heads, of a mean
    toward = (rows.view(owned, heads.num_heads, width) * shared).sum(-1).numpy()
    return weights, weights * (toward - dots) * np.where(pre > 0, 1, heads.slope).astype(pre.dtype)
