"""The kernels of attention.py: over arcs one for each direction and tile; over rows those from `state_kernel` on.

Arcs of neighbouring rows are taken a window at a time: first the scores of all of them, a few numbers per arc; then
their exponentials, in full registers whatever the number of heads; then the rows, weighted, of `CHUNK` arcs of a row at
a time. Windows lie in the level 1 cache. Where registers hold some of the heads only, a chunk of arcs is gone over once
for each so many, with the same weights, and the row's sums wait in memory.

Legend: H heads; a tile's columns are whole vectors of some heads.
"""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.tiles import RepeatedTile, Tile, registers
from distgnn.kernels.simd.head_sums import add_and_dot, own_columns
from distgnn.kernels.simd.vector_math import add_to, exp, reciprocal
from distgnn.kernels.simd.vectors import (
    add,
    at,
    choose,
    fma_heads,
    full,
    greater,
    load,
    maximum,
    mul,
    prefetch,
    scale,
    store,
    sub,
    zeros,
)

CHUNK = 32  # arcs
ROWS_AHEAD = 4  # own rows that the backward pass asks for before it reads them
WINDOW = 512  # weights of arcs that are made at a time
SCORES_AHEAD = 64  # arcs before the maximum of scores a source's are asked for
ALPHA, BETA = 1, 2  # the rows of them
STATE = 4  # numbers per target and head that the backward pass gathers: score, maximum, 1 / sum, dot


@inline(counted=False)
def leaky(score, slope):
    """The larger of x and slope · x, for slopes from 0 to 1."""
    return maximum(score, scale(score, slope))


@inline(counted=False)
def slopes(tile, like, score, slope):
    """Derivative of the leaky ReLU."""
    return choose(greater(score, zeros(tile, like)), full(tile, like, 1), full(tile, like, slope))


def wide_tile(dtype: DTypeLike) -> Tile:
    """One full register, across arcs and heads."""
    return Tile(registers()[0] // np.dtype(dtype).itemsize, (0,), (0,))


@inline(counted=False)
def _weigh(
    heads_tile, wide, lanes, i, begin, filled, last, indptr, indices, source_scores, target_scores, slope, top, scores,
    powers,
):  # fmt: skip
    """For arcs [begin, filled), of targets from i on: their exponentials, to the window's powers; top of targets."""
    # Plainly, for an arc and all heads: exp(leaky(source_scores[j] + target) - top).
    # For the arcs of many targets at a time, as in `_fill`. A target's maximum is taken where its arcs begin.
    heads, first = top.shape[1], begin
    while first < filled:
        target, end = load(heads_tile, target_scores, i * heads), min(indptr[i + 1], filled)
        if first == indptr[i]:
            highest = full(heads_tile, top, -np.inf)
            for e in range(first, indptr[i + 1]):
                # The leaky ReLU and adding the target's score both keep the order, so the maximum of the raw source
                # scores is enough: one load per arc in this first pass.
                prefetch(heads_tile, source_scores, at(indices, min(e + SCORES_AHEAD, last)) * heads)
                highest = maximum(highest, load(heads_tile, source_scores, at(indices, e) * heads))
            highest = leaky(add(highest, target), slope)
            store(heads_tile, top, i * heads, highest)
        highest = load(heads_tile, top, i * heads)
        for e in range(first, end):
            score = add(load(heads_tile, source_scores, at(indices, e) * heads), target)
            store(heads_tile, scores, (e - begin) * heads, sub(leaky(score, slope), highest))
        first, i = end, i + 1
    for place in range(0, (filled - begin) * heads, lanes):
        store(wide, powers, place, exp(load(wide, scores, place)))


@functools.cache
def forward_kernel(repeated: RepeatedTile, heads_tile: Tile, wide: Tile) -> Callable:
    tile, times, step, _, heads_step = repeated
    lanes = wide.lanes

    @kernel
    def attend_rows(
        start, stop, ahead, indptr, indices, feats, source_scores, target_scores, slope, out, top, sums, divide
    ):  # fmt: skip
        """Writes the tile's columns of out[start:stop], and top and sums."""
        # Plainly, for one head:
        #     top = max(leaky(source_scores[j] + target) for j in sources); sums = Σ exp(score - top); out = Σ
        #     exp(…) * feats[j]
        width, heads, last = feats.shape[1], top.shape[1], indptr[stop] - 1
        window = max(CHUNK, WINDOW // heads)
        scores = np.zeros(window * heads + lanes, top.dtype)
        powers = np.zeros(window * heads + lanes, top.dtype)
        factors, row_sums = np.zeros(heads + lanes, top.dtype), np.zeros(times * step, top.dtype)
        begin = filled = indptr[start]
        for i in range(start, stop):
            if indptr[i] == indptr[i + 1]:
                store(heads_tile, top, i * heads, full(heads_tile, top, -np.inf))
            weight_sums, rows = zeros(heads_tile, top), zeros(tile, out)
            for chunk in range(indptr[i], indptr[i + 1], CHUNK):
                count = min(CHUNK, indptr[i + 1] - chunk)
                if chunk + count > filled:
                    begin, filled = chunk, min(chunk + window, last + 1)
                    _weigh(
                        heads_tile, wide, lanes, i, begin, filled, last, indptr, indices, source_scores, target_scores,
                        slope, top, scores, powers,
                    )  # fmt: skip
                place = (chunk - begin) * heads
                for t in range(times):
                    if times > 1:
                        rows = zeros(tile, out) if chunk == indptr[i] else load(tile, row_sums, t * step)
                    for a in range(count):
                        # Weights are read back from the level 1 cache, one per head, and spread over the head's
                        # columns.
                        e, weight = chunk + a, place + a * heads
                        prefetch(tile, feats, at(indices, min(e + ahead, last)) * width + t * step)
                        if t == 0:
                            weight_sums = add(weight_sums, load(heads_tile, powers, weight))
                        row = load(tile, feats, at(indices, e) * width + t * step)
                        rows = fma_heads(tile, row, powers, weight + t * heads_step, rows)
                    if times > 1:
                        store(tile, row_sums, t * step, rows)
            store(heads_tile, sums, i * heads, weight_sums)
            # One division per head, then multiplications; 0 for a row without arcs, whose sum is 0.
            if divide:
                store(heads_tile, factors, 0, reciprocal(weight_sums))
            for t in range(times):
                if times > 1:
                    rows = zeros(tile, out) if indptr[i] == indptr[i + 1] else load(tile, row_sums, t * step)
                if divide:
                    rows = fma_heads(tile, rows, factors, t * heads_step, zeros(tile, out))
                store(tile, out, i * width + t * step, rows)

    return attend_rows


@inline(counted=False)
def _fill(
    heads_tile, wide, lanes, j, begin, filled, last, indptr, indices, source_scores, state, slope, first_target,
    grad_target, weights,
):  # fmt: skip
    """For arcs [begin, filled), of sources from j on: alpha and its product with the slope, to the window's weights."""
    # Plainly, for an arc and all heads: alpha = exp(leaky(s) - top) * inverse, beta = alpha * slope(s).
    # For the arcs of many sources at a time: for those of one the exponentials, which are read in full registers, would
    # wait for its few scores to be written, and a loop more would end at a place that cannot be guessed.
    arguments, alpha, beta, heads = weights[0], weights[ALPHA], weights[BETA], source_scores.shape[1]
    first = begin
    while first < filled:
        source = load(heads_tile, source_scores, j * heads)
        end = min(indptr[j + 1], filled)
        for e in range(first, end):
            i = at(indices, e)
            # A window ahead: state and grad_target are small, but at random places.
            prefetch(heads_tile, state, at(indices, min(e + (filled - begin), last)) * STATE * heads)
            prefetch(heads_tile, grad_target, (first_target + i) * heads)
            place, a = i * STATE * heads, (e - begin) * heads
            score = add(load(heads_tile, state, place), source)
            below = sub(leaky(score, slope), load(heads_tile, state, place + heads))
            store(heads_tile, arguments, a, below)
            store(heads_tile, alpha, a, load(heads_tile, state, place + 2 * heads))
            store(heads_tile, beta, a, slopes(heads_tile, state, score, slope))
        first, j = end, j + 1
    for place in range(0, (filled - begin) * heads, lanes):
        power = mul(exp(load(wide, arguments, place)), load(wide, alpha, place))
        store(wide, alpha, place, power)
        store(wide, beta, place, mul(power, load(wide, beta, place)))


@functools.cache
def backward_kernel(
    repeated: RepeatedTile, gathered: bool, grad_step: int, heads_tile: Tile, wide: Tile, first_tile: Tile
) -> Callable:
    tile, times, step, own_heads, heads_step = repeated
    lanes, columns = wide.lanes, tile.lanes * tile.vectors

    @kernel
    def source_rows(
        start, stop, bounds, ahead, indptr, indices, grad, source_scores, state, slope, feats, grad_feats, grad_source,
        grad_target,
    ):  # fmt: skip
        """For parts [start, stop) of the sources: writes the tile's columns of grad_feats, adds its share to
        grad_source and to the parts' own grad_target, which the first tile's call begins at 0."""
        # Plainly, for an arc from j to i and one head:
        #     alpha = exp(leaky(s) - top[i]) * inverse[i]       s = source_scores[j] + target_scores[i]
        #     grad_feats[j] += alpha * grad[i];  change = alpha * slope(s) * (⟨grad[i], feats[j]⟩ - dots[i])
        # By source: grad[i] is the one row that is gathered, and its dot product with feats[j] is taken while it is in
        # registers. What is needed of target i beside it lies in `state`, side by side: one cache line, not four.
        # grad_feats may be feats: row j is read by nobody but its own turn, before it is written. Of columns that an
        # earlier tile has written, which only a vector that was moved back has, `own_columns` keeps none.
        # `gathered` is the tile's place in a row of grad, which may stand for all heads.
        width, heads, num, grad_width = feats.shape[1], grad_source.shape[1], grad_target.shape[1], grad.shape[1]
        window = max(CHUNK, WINDOW // heads)
        weights = np.zeros((3, window * heads + lanes), grad_source.dtype)
        alpha, beta = weights[ALPHA], weights[BETA]
        mine, row_sums = np.zeros((times, columns), grad_source.dtype), np.zeros(times * step, grad_source.dtype)
        # grad_target would be written by the threads of all sources of i. So each part of the sources adds to one of
        # its own; parts are fixed, and so is the order in which they are added up: no atomics, the same bits.
        for part in range(start, stop):
            if first_tile:
                grad_target[part, :, :] = 0
            begin = filled = indptr[bounds[part]]
            last = indptr[bounds[part + 1]] - 1
            for j in range(bounds[part], bounds[part + 1]):
                # Its own row is waited for as well: it is read once, and no arc of this source asks for it before.
                prefetch(tile, feats, (j + ROWS_AHEAD) * width)
                for t in range(times):
                    own_columns(tile, load(tile, feats, j * width + t * step), mine[t])
                score_sums, rows = zeros(own_heads, grad_source), zeros(tile, grad_feats)
                for chunk in range(indptr[j], indptr[j + 1], CHUNK):
                    count = min(CHUNK, indptr[j + 1] - chunk)
                    if chunk + count > filled:
                        begin, filled = chunk, min(chunk + window, last + 1)
                        _fill(
                            heads_tile, wide, lanes, j, begin, filled, last, indptr, indices, source_scores, state,
                            slope, part * num, grad_target, weights,
                        )  # fmt: skip
                    for t in range(times):
                        if times > 1:
                            score_sums = zeros(own_heads, grad_source)
                            rows = zeros(tile, grad_feats) if chunk == indptr[j] else load(tile, row_sums, t * step)
                        place, head = (chunk - begin) * heads + t * heads_step, t * heads_step
                        for a in range(count):
                            i, soon = at(indices, chunk + a), at(indices, min(chunk + a + ahead, last))
                            prefetch(gathered, grad, soon * grad_width + t * grad_step)
                            row, weight = i * grad_width + t * grad_step, place + a * heads
                            rows, dots = add_and_dot(gathered, own_heads, grad, row, alpha, weight, mine[t], rows)
                            # With several tiles ⟨grad, feats⟩ comes in shares; dots[i] is taken off once.
                            if first_tile:
                                dots = sub(dots, load(own_heads, state, (i * STATE + 3) * heads + head))
                            dots = mul(dots, load(own_heads, beta, weight))
                            score_sums = add(score_sums, dots)
                            add_to(own_heads, grad_target, (part * num + i) * heads + head, dots)
                        if times > 1:
                            store(tile, row_sums, t * step, rows)
                            add_to(own_heads, grad_source, j * heads + head, score_sums)
                if times == 1:
                    add_to(own_heads, grad_source, j * heads, score_sums)
                for t in range(times):
                    if times > 1:
                        rows = zeros(tile, grad_feats) if indptr[j] == indptr[j + 1] else load(tile, row_sums, t * step)
                    store(tile, grad_feats, j * width + t * step, rows)

    return source_rows


@functools.cache
def state_kernel(heads_tile: Tile) -> Callable:
    @kernel(counted=False)
    def gather_state(start, stop, scores, top, sums, dots, state):
        """Writes state[start:stop]."""
        heads = scores.shape[1]
        for i in range(start, stop):
            place = i * STATE * heads
            store(heads_tile, state, place, load(heads_tile, scores, i * heads))
            store(heads_tile, state, place + heads, load(heads_tile, top, i * heads))
            store(heads_tile, state, place + 2 * heads, reciprocal(load(heads_tile, sums, i * heads)))
            store(heads_tile, state, place + 3 * heads, load(heads_tile, dots, i * heads))

    return gather_state


@functools.cache
def parts_kernel(heads_tile: Tile) -> Callable:
    @kernel(counted=False)
    def add_parts(start, stop, parts, out, column):
        """Writes the columns from `column` on of out[start:stop]: the sums of parts, in their order."""
        num, heads, width = parts.shape[1], parts.shape[2], out.shape[1]
        for i in range(start, stop):
            sums = load(heads_tile, parts, i * heads)
            for part in range(1, parts.shape[0]):
                sums = add(sums, load(heads_tile, parts, (part * num + i) * heads))
            store(heads_tile, out, i * width + column, sums)

    return add_parts


@kernel(counted=False)
def merge_rows(start, stop, out, top, sums, rows, other_out, other_top, other_sums):
    """Writes rows[start:stop] of out, top and sums."""
    heads = top.shape[1]
    width = out.shape[1] // heads
    for m in range(start, stop):
        i = rows[m]
        for h in range(heads):
            # exp(-inf - -inf) would be a NaN: a side without arcs has weight 0.
            highest = max(top[i, h], other_top[m, h])
            mine = np.exp(top[i, h] - highest) if top[i, h] > -np.inf else out.dtype.type(0)
            theirs = np.exp(other_top[m, h] - highest) if other_top[m, h] > -np.inf else out.dtype.type(0)
            top[i, h] = highest
            sums[i, h] = sums[i, h] * mine + other_sums[m, h] * theirs
            for k in range(h * width, (h + 1) * width):
                out[i, k] = out[i, k] * mine + other_out[m, k] * theirs


@kernel(counted=False)
def divide_rows(start, stop, out, sums):
    """Writes out[start:stop]."""
    for i in range(start, stop):
        factor = out.dtype.type(1) / sums[i] if sums[i] > 0 else out.dtype.type(0)
        for k in range(out.shape[1]):
            out[i, k] *= factor
