"""Scores of arcs from both their ends (GATv2), without a row per arc.

    R targets, N sources, E arcs, H heads, F columns per head; arc number a = arcs[e] of CSR position e, from j to i.

    x = sources[j] + targets[i]      scores[a, h] = Σ_k attn[h, k] * leaky_relu(x[h, k])

Backward, with d the gradient of scores and s(x) the slope of the leaky ReLU (1 or `slope`):

    grad_targets[i] = attn * Σ_e d * s(x)        grad_sources[j] = attn * Σ_e d * s(x)    (transposed CSR)
    grad_attn = Σ_i Σ_e d * leaky_relu(x)
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.attention.attention_kernels import leaky, slopes
from distgnn.kernels.attention.head_dots import tiles_of_whole_heads
from distgnn.kernels.runtime.arrays import index_array, indptr_array, row_array
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import edge_chunks, run
from distgnn.kernels.runtime.tiles import Tile, head_tiles
from distgnn.kernels.runtime.tuning import arcs_ahead
from distgnn.kernels.simd.head_sums import add_by_head
from distgnn.kernels.simd.vectors import add, fma_heads, load, mul, prefetch, store, zeros

CHUNKS = 64  # of rows whose gradients of attn are summed together: fixed, so that threads do not change bits


def pair_scores(
    indptr: np.ndarray,
    others: np.ndarray,
    arcs: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    attn: np.ndarray,
    heads: int,
    *,
    slope: float = 0.2,
) -> np.ndarray:
    """Scores of every arc.

    Args: indptr int [R + 1], others int [E]: sources by target; arcs int [E]: number of the arc at each position, each
        once; sources float32 or float64 [N, H * F]; targets [R, H * F]; attn [1, H * F]; heads: H; slope in [0, 1].
    Returns: [E, H].
    """
    arguments = _checked(indptr, others, arcs, sources, targets, attn, heads, slope)
    scores = np.zeros((len(arguments[1]), heads), arguments[3].dtype)
    for tile in head_tiles(heads, arguments[3].shape[1] // heads, scores.dtype, half=True):
        ahead = arcs_ahead(tile.width * scores.itemsize)
        run(_score_kernel(tile), edge_chunks(arguments[0], arguments[3].shape[1]), ahead, *arguments, scores)
    return scores


def pair_scores_backward(
    indptr: np.ndarray,
    others: np.ndarray,
    arcs: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    attn: np.ndarray,
    grad: np.ndarray,
    *,
    slope: float = 0.2,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of targets [R, H * F] and, summed over all rows, of attn [1, H * F].

    Args: as `pair_scores`; grad [E, H]: of scores. With a CSR by source, and sources and targets changed over, the
        first result is the gradient of sources.
    """
    heads = grad.shape[1]
    arguments = _checked(indptr, others, arcs, sources, targets, attn, heads, slope)
    rows = arguments[4]
    out = np.empty(rows.shape, rows.dtype)
    # Each range of rows sums the gradient of attn apart; the ranges are fixed and added in order.
    sums = np.zeros((CHUNKS, rows.shape[1]), rows.dtype)
    bounds = np.linspace(0, len(rows), CHUNKS + 1).astype(np.int64)
    for tile in tiles_of_whole_heads(heads, rows.shape[1] // heads, rows.dtype):
        ahead = arcs_ahead(tile.width * rows.itemsize)
        work = bounds, ahead, *arguments, row_array(grad, "grad"), out, sums
        run(_backward_kernel(tile), list(range(CHUNKS + 1)), *work)
    return out, sums.sum(axis=0, keepdims=True)


def _checked(
    indptr: np.ndarray,
    others: np.ndarray,
    arcs: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    attn: np.ndarray,
    heads: int,
    slope: float,
) -> tuple:
    indptr, others, arcs = indptr_array(indptr), index_array(others, "others"), index_array(arcs, "arcs")
    sources, targets, attn = row_array(sources, "sources"), row_array(targets, "targets"), row_array(attn, "attn")
    widths = {sources.shape[1], targets.shape[1], attn.shape[1]}
    if len(widths) > 1 or heads < 1 or attn.shape[1] % heads or len(attn) != 1 or len(targets) != len(indptr) - 1:
        raise ValueError(
            f"sources {sources.shape}, targets {targets.shape} and attn {attn.shape} do not fit {heads} heads and "
            f"{len(indptr) - 1} rows"
        )
    if not sources.dtype == targets.dtype == attn.dtype:
        raise ValueError(f"rows must have one dtype, got {sources.dtype}, {targets.dtype} and {attn.dtype}")
    if not 0 <= slope <= 1:
        raise ValueError(f"slope must be in [0, 1], got {slope}")
    return indptr, others, arcs, sources, targets, attn, sources.dtype.type(slope)


@functools.cache
def _score_kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def score_rows(start, stop, ahead, indptr, others, arcs, sources, targets, attn, slope, scores):
        """Adds the tile's share to the scores of the arcs of rows [start, stop)."""
        width, heads, last = targets.shape[1], scores.shape[1], indptr[stop] - 1
        for i in range(start, stop):
            # Plainly: scores[arc] = (leaky(sources[j] + targets[i]) * attn).sum() per head. The row of x is never
            # stored: it is made in registers, forward and again backward, because E rows would be read and written at
            # memory speed.
            target, weight = load(tile, targets, i * width), load(tile, attn, 0)
            for e in range(indptr[i], indptr[i + 1]):
                prefetch(tile, sources, others[min(e + ahead, last)] * width)
                row = leaky(add(load(tile, sources, others[e] * width), target), slope)
                add_by_head(tile, mul(row, weight), scores, arcs[e] * heads)

    return score_rows


@functools.cache
def _backward_kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def backward_rows(
        start, stop, bounds, ahead, indptr, others, arcs, sources, targets, attn, slope, grad, out, sums
    ):  # fmt: skip
        """Writes the tile's columns of out and sums for the row ranges [start, stop) of bounds."""
        width, heads = targets.shape[1], grad.shape[1]
        for chunk in range(start, stop):
            last = indptr[bounds[chunk + 1]] - 1
            for i in range(bounds[chunk], bounds[chunk + 1]):
                target = load(tile, targets, i * width)
                total, attn_sums = zeros(tile, targets), load(tile, sums, chunk * width)
                for e in range(indptr[i], indptr[i + 1]):
                    prefetch(tile, sources, others[min(e + ahead, last)] * width)
                    # x once, for both gradients: through its slope to the target, and its leaky ReLU to attn.
                    row = add(load(tile, sources, others[e] * width), target)
                    total = fma_heads(tile, slopes(tile, targets, row, slope), grad, arcs[e] * heads, total)
                    attn_sums = fma_heads(tile, leaky(row, slope), grad, arcs[e] * heads, attn_sums)
                store(tile, out, i * width, mul(total, load(tile, attn, 0)))
                store(tile, sums, chunk * width, attn_sums)

    return backward_rows
