"""Graph attention in one gather: score, softmax over a row's arcs and weighted sum; nothing per arc is stored.

    R targets, N sources, H heads, F columns per head.

    score[e, h] = leaky_relu(source_scores[j, h] + target_scores[i, h])      arc e from j = indices[e] to i
    alpha[e, h] = exp(score[e, h] - maximum[i, h]) / sums[i, h]
    out[i, h]   = Σ_e alpha[e, h] * feats[j, h]

`attention_partial` leaves out undivided, beside maximum and sums, so that partial results of several ranks can be
merged. Backward the scores are computed again. With g the gradient of out and d[i, h] = ⟨g[i, h], out[i, h]⟩:

    grad_feats[j, h]  = Σ alpha g[i, h]                                 over arcs from j (transposed CSR)
    grad_source[j, h] = ⟨feats[j, h], Σ beta g[i, h]⟩ - Σ beta d[i, h]      beta = alpha * slope of the leaky ReLU
    grad_target[i, h] = ⟨g[i, h], Σ beta feats[j, h]⟩ - d[i, h] Σ beta      over arcs to i

so no dot product per arc is needed: rows are only summed, under two weights. Each is linear in partial arcs.
"""

import functools

import numpy as np

from .arrays import ROWS, index_array, indptr_array, output, row_array, sums_dtype
from .first_use import checked_once
from .jit import inline, kernel
from .threads import edge_chunks, even_chunks, run
from .tiles import head_tiles, row_tiles
from .vector_math import add_by_head, exp, reciprocal
from .vectors import add, at, choose, fma_heads, full, greater, load, maximum, mul, prefetch, scale, store, sub, zeros

AHEAD = 16


def attention(indptr, indices, feats, source_scores, target_scores, *, slope=0.2, out=None):
    """Attention-weighted sum of source rows.

    Args: indptr int [R + 1]; indices int [E]; feats float32, float64 or bfloat16 (uint16) [N, H, F]; source_scores
        [N, H]; target_scores [R, H]; slope of the leaky ReLU; out [R, H, F].
    Returns: (out, maximum [R, H], sums [R, H]); rows without arcs are 0, with maximum -inf and sum 0.
    Notes: memory R · H · (F + 2), whatever the number of arcs. Same bits for any number of threads.
    """
    state = attention_partial(indptr, indices, feats, source_scores, target_scores, slope=slope, out=out)
    finish_attention(state[0], state[2])
    return state


@checked_once
def attention_partial(indptr, indices, feats, source_scores, target_scores, *, slope=0.2, out=None):
    """`attention` before the division: (out, maximum, sums), to be merged and then finished."""
    graph = _Graph(indptr, indices, feats, source_scores, target_scores, slope)
    out = output(out, (graph.rows, *graph.tail), graph.dtype)
    top, sums = np.empty((2, graph.rows, graph.heads), graph.dtype)
    for tile in head_tiles(*graph.tail, graph.dtype):
        graph.run(_forward_kernel(tile, graph.score_tile), out.reshape(graph.rows, -1), top, sums)
    return out, top, sums


@checked_once
def merge_attention(out, maximum, sums, rows, other_out, other_maximum, other_sums):
    """Add the partial results of another rank's arcs to rows of these, in place.

    Args: out [R, H, F], maximum and sums [R, H]; rows int [M], each at most once; other_… [M, …].
    Returns: (out, maximum, sums).
    """
    rows = index_array(rows, "rows")
    flat = [row_array(a.reshape(len(a), int(np.prod(a.shape[1:])))) for a in (other_out, other_maximum, other_sums)]
    mine = [output(a, a.shape, flat[0].dtype).reshape(len(a), int(np.prod(a.shape[1:]))) for a in (out, maximum, sums)]
    run(_merge_rows, even_chunks(len(rows), flat[0].shape[1]), *mine, rows, *flat)
    return out, maximum, sums


@checked_once
def finish_attention(out, sums):
    """Divide by the sums, in place; rows without arcs are 0."""
    heads = sums.shape[1]
    flat = output(out, out.shape, sums.dtype).reshape(len(out) * heads, -1) if out.size else out.reshape(0, 1)
    run(_divide_rows, even_chunks(len(flat), flat.shape[1]), flat, sums.reshape(-1))
    return out


@checked_once
def attention_backward(
    forward, backward, feats, source_scores, target_scores, grad, maximum, sums, dots, *, slope=0.2, grad_feats=None
):
    """Gradients of `attention`.

    Args: forward: (indptr, indices) by target; backward: (indptr, indices) by source (transpose_csr); feats,
        source_scores, target_scores, slope, maximum, sums: as in the forward pass (merged over ranks); grad
        [R, H, F], float32 or bfloat16; dots [R, H]: ⟨grad, out⟩ of each head; grad_feats [N, H, F]: where to write,
        may be bfloat16 if grad is.
    Returns: (grad_feats [N, H, F], grad_source_scores [N, H], grad_target_scores [R, H]): this rank's arcs' share.
    """
    targets = _Graph(*forward, feats, source_scores, target_scores, slope)
    sources = _Graph(*backward, grad, target_scores, source_scores, slope)
    state = [row_array(a, "maximum, sums, dots") for a in (maximum, sums, dots)]
    narrow = grad_feats is not None and grad_feats.dtype == sources.feats.dtype
    shape = sources.rows, *sources.tail
    grad_feats = output(grad_feats, shape, sources.feats.dtype if narrow else sources.dtype, "grad_feats")
    grad_source, grad_target = np.zeros((sources.rows, sources.heads)), np.zeros((targets.rows, targets.heads))
    grad_source, grad_target = grad_source.astype(sources.dtype), grad_target.astype(targets.dtype)
    grads = grad_feats.reshape(sources.rows, -1)
    rows = targets.feats, sources.feats
    for number, tile in enumerate(head_tiles(*targets.tail, targets.dtype)):
        targets.run(_target_kernel(tile, targets.score_tile), rows[1], *state, grad_target, number == 0)
    for number, tile in enumerate(head_tiles(*sources.tail, sources.dtype, half=True)):
        sources.run(_source_kernel(tile, sources.score_tile), rows[0], *state, grads, grad_source, number == 0)
    return grad_feats, grad_source, grad_target


class _Graph:
    """Checked arguments: rows gathered over a CSR, and the scores at the two ends of an arc."""

    def __init__(self, indptr, indices, feats, gathered_scores, row_scores, slope):
        feats = np.asarray(feats)
        if feats.ndim != 3:
            raise ValueError(f"feats must have shape [rows, heads, width], got {feats.shape}")
        self.indptr, self.indices = indptr_array(indptr), index_array(indices)
        self.rows, self.tail, self.heads = len(self.indptr) - 1, feats.shape[1:], feats.shape[1]
        self.feats = row_array(feats.reshape(len(feats), int(np.prod(self.tail))), dtypes=ROWS)
        self.dtype = sums_dtype(self.feats)
        shapes = (len(feats), self.heads), (self.rows, self.heads)
        self.scores = [row_array(np.asarray(a, self.dtype), "scores") for a in (gathered_scores, row_scores)]
        if tuple(a.shape for a in self.scores) != shapes:
            raise ValueError(f"scores must have shapes {shapes}, got {tuple(a.shape for a in self.scores)}")
        if not 0 <= slope <= 1:
            raise ValueError(f"slope must be in [0, 1], got {slope}")
        tiles = row_tiles(self.heads, self.dtype)
        if len(tiles) > 1:
            raise ValueError(f"{self.heads} heads do not fit in registers")
        self.score_tile, self.slope = tiles[0][1], self.dtype.type(slope)

    def run(self, function, *results):
        bounds = edge_chunks(self.indptr, self.feats.shape[1])
        run(function, bounds, self.indptr, self.indices, self.feats, *self.scores, self.slope, *results)


@inline
def leaky(score, slope):
    """The larger of x and slope · x, for slopes from 0 to 1."""
    return maximum(score, scale(score, slope))


@functools.cache
def _forward_kernel(tile, heads_tile):
    @kernel
    def attend_rows(start, stop, indptr, indices, feats, source_scores, target_scores, slope, out, top, sums):
        """Writes the tile's columns of out[start:stop], and top and sums."""
        width, heads, last = feats.shape[1], top.shape[1], indptr[stop] - 1
        alpha = np.empty(heads, top.dtype)
        for i in range(start, stop):
            target = load(heads_tile, target_scores, i * heads)
            highest = full(heads_tile, top, -np.inf)
            for e in range(indptr[i], indptr[i + 1]):
                score = add(load(heads_tile, source_scores, at(indices, e) * heads), target)
                highest = maximum(highest, leaky(score, slope))
            weight_sums, rows = zeros(heads_tile, top), zeros(tile, out)
            for e in range(indptr[i], indptr[i + 1]):
                prefetch(tile, feats, at(indices, min(e + AHEAD, last)) * width)
                score = add(load(heads_tile, source_scores, at(indices, e) * heads), target)
                power = exp(sub(leaky(score, slope), highest))
                weight_sums = add(weight_sums, power)
                store(heads_tile, alpha, 0, power)
                rows = fma_heads(tile, load(tile, feats, at(indices, e) * width), alpha, 0, rows)
            store(heads_tile, top, i * heads, highest)
            store(heads_tile, sums, i * heads, weight_sums)
            store(tile, out, i * width, rows)

    return attend_rows


@inline
def slopes(tile, like, score, slope):
    """Derivative of the leaky ReLU."""
    return choose(greater(score, zeros(tile, like)), full(tile, like, 1), full(tile, like, slope))


@functools.cache
def _target_kernel(tile, heads_tile):
    @kernel
    def target_rows(
        start, stop, indptr, indices, feats, source_scores, target_scores, slope, grad, top, sums, dots, grad_target,
        first,
    ):  # fmt: skip
        """Adds the tile's share to grad_target[start:stop]."""
        width, heads, last = feats.shape[1], top.shape[1], indptr[stop] - 1
        beta = np.empty(heads, top.dtype)
        for i in range(start, stop):
            target = load(heads_tile, target_scores, i * heads)
            highest, inverse = load(heads_tile, top, i * heads), reciprocal(load(heads_tile, sums, i * heads))
            beta_sums, rows = zeros(heads_tile, top), zeros(tile, grad_target)
            for e in range(indptr[i], indptr[i + 1]):
                prefetch(tile, feats, at(indices, min(e + AHEAD, last)) * width)
                score = add(load(heads_tile, source_scores, at(indices, e) * heads), target)
                power = mul(exp(sub(leaky(score, slope), highest)), inverse)
                power = mul(power, slopes(heads_tile, top, score, slope))
                beta_sums = add(beta_sums, power)
                store(heads_tile, beta, 0, power)
                rows = fma_heads(tile, load(tile, feats, at(indices, e) * width), beta, 0, rows)
            if first:
                value = mul(beta_sums, load(heads_tile, dots, i * heads))
                store(heads_tile, grad_target, i * heads, scale(value, -1))
            add_by_head(tile, mul(rows, load(tile, grad, i * width)), grad_target, i * heads)

    return target_rows


@functools.cache
def _source_kernel(tile, heads_tile):
    @kernel
    def source_rows(
        start, stop, indptr, indices, grad, target_scores, source_scores, slope, feats, top, sums, dots, grad_feats,
        grad_source, first,
    ):  # fmt: skip
        """Writes the tile's columns of grad_feats[start:stop] and adds its share to grad_source; rows are sources."""
        width, heads, last = feats.shape[1], top.shape[1], indptr[stop] - 1
        alpha, beta = np.empty(heads, top.dtype), np.empty(heads, top.dtype)
        for j in range(start, stop):
            source = load(heads_tile, source_scores, j * heads)
            dot_sums = zeros(heads_tile, top)
            alpha_rows, beta_rows = zeros(tile, grad_feats), zeros(tile, grad_feats)
            for e in range(indptr[j], indptr[j + 1]):
                prefetch(tile, grad, at(indices, min(e + AHEAD, last)) * width)
                i = at(indices, e)
                score = add(load(heads_tile, target_scores, i * heads), source)
                power = exp(sub(leaky(score, slope), load(heads_tile, top, i * heads)))
                power = mul(power, reciprocal(load(heads_tile, sums, i * heads)))
                sloped = mul(power, slopes(heads_tile, top, score, slope))
                dot_sums = add(dot_sums, mul(sloped, load(heads_tile, dots, i * heads)))
                store(heads_tile, alpha, 0, power)
                store(heads_tile, beta, 0, sloped)
                row = load(tile, grad, i * width)
                alpha_rows = fma_heads(tile, row, alpha, 0, alpha_rows)
                beta_rows = fma_heads(tile, row, beta, 0, beta_rows)
            if first:
                store(heads_tile, grad_source, j * heads, scale(dot_sums, -1))
            store(tile, grad_feats, j * width, alpha_rows)
            add_by_head(tile, mul(beta_rows, load(tile, feats, j * width)), grad_source, j * heads)

    return source_rows


@kernel
def _merge_rows(start, stop, out, top, sums, rows, other_out, other_top, other_sums):
    """Writes rows[start:stop] of out, top and sums."""
    heads = top.shape[1]
    width = out.shape[1] // heads
    for m in range(start, stop):
        i = rows[m]
        for h in range(heads):
            highest = max(top[i, h], other_top[m, h])
            mine = np.exp(top[i, h] - highest) if top[i, h] > -np.inf else out.dtype.type(0)
            theirs = np.exp(other_top[m, h] - highest) if other_top[m, h] > -np.inf else out.dtype.type(0)
            top[i, h] = highest
            sums[i, h] = sums[i, h] * mine + other_sums[m, h] * theirs
            for k in range(h * width, (h + 1) * width):
                out[i, k] = out[i, k] * mine + other_out[m, k] * theirs


@kernel
def _divide_rows(start, stop, out, sums):
    """Writes out[start:stop]."""
    for i in range(start, stop):
        factor = out.dtype.type(1) / sums[i] if sums[i] > 0 else out.dtype.type(0)
        for k in range(out.shape[1]):
            out[i, k] *= factor
