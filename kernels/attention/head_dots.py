"""Rows and one number per head: what attention does to rows beside gathering them.

head_dots    out[i, h] = Σ_k left[i, h, k] * right[i, h, k]                    right may be one for all heads
head_scores  out[s, i, h] = Σ_k feats[i, h, k] * rows[s, h, k]                 for S rows, in one pass
head_outer   feats[i, h, k] += Σ_s factors[s][i, h] * rows[s, h, k]            in place, for S rows
head_mean    out[i, k] = Σ_h feats[i, h, k] / H + bias[k]                      and the rows in bfloat16 beside it

What the backward pass of attention needs of a gradient of y = dropout(relu(z + bias)), in one pass over the rows.

    grad_feats[i] = grad[i] / (1 - p) where out[i] > 0, else 0             the gradient of z, out = y
    dots[i, h]    = ⟨grad_feats[i, h], z[i, h]⟩ = ⟨grad[i, h], out[i, h]⟩ - ⟨grad_feats[i, h], bias[h]⟩
    grad_bias     = Σ_i grad_feats[i]

for out = (z + bias) / (1 - p) where it is not 0. The sums over rows: as `activate_backward`.
"""

import functools
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import DTypeLike

from distgnn.kernels.rowwise.activation import BLOCK_ROWS
from distgnn.kernels.runtime.arrays import ROWS, output, row_array, sums_dtype, vector
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.runtime.tiles import Tile, head_tiles, registers
from distgnn.kernels.simd.head_sums import add_by_head
from distgnn.kernels.simd.random_vectors import mask_parameters
from distgnn.kernels.simd.vector_math import add_to
from distgnn.kernels.simd.vectors import add, choose, fma_heads, greater, load, mul, scale, store, sub, zeros


def relu_backward_dots(
    grad: np.ndarray,
    out: np.ndarray,
    bias: np.ndarray | None,
    heads: int,
    *,
    p: float = 0.0,
    grad_feats: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradient of ReLU and dropout, and its dot products with the rows before the bias, head by head.

    Args: grad float32, float64 or bfloat16 (uint16) [N, H * F]: gradient of out; out the same: the result; bias [H * F]
        or None; heads: H; p: dropout probability; grad_feats like grad: where to write, may be `grad` itself.
    Returns: (grad_feats, grad_bias [H * F], dots [N, H]), the last two float32 for bfloat16.
    Raises: ValueError on shapes and dtypes.
    Notes: column sums as in `activate_backward`: same bits for any number of threads.
    """
    grad, out = row_array(grad, "grad", ROWS), row_array(out, "out", ROWS)
    if out.shape != grad.shape or out.dtype != grad.dtype or heads < 1 or grad.shape[1] % heads:
        raise ValueError(
            f"grad {grad.dtype} {grad.shape} and out {out.dtype} {out.shape} must be rows of {heads} heads"
        )
    dtype, (num, width) = sums_dtype(grad), grad.shape
    bias = vector(np.zeros(width) if bias is None else bias, width, dtype, "bias")
    grad_feats = output(grad_feats, grad.shape, grad.dtype, "grad_feats")
    blocks = -(-num // BLOCK_ROWS)
    sums, dots = np.zeros((blocks, width), dtype), np.zeros((num, heads), dtype)
    factor = mask_parameters(p, dtype)[1]
    if width:
        chunks = even_chunks(blocks, BLOCK_ROWS * width)
        for tile in head_tiles(1, width // heads, dtype, half=True):
            run(_kernel(tile), chunks, grad, out, bias, factor, grad_feats, sums, dots)
    return grad_feats, sums.sum(axis=0), dots


@functools.cache
def _kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def through_rows(start, stop, grad, out, bias, factor, grad_feats, sums, dots):
        """Writes the tile's columns of grad_feats and sums, and adds its share to dots, of row blocks [start, stop)."""
        # Head by head, so that all of a vector fits in registers. Vectors of a tile may share columns, and are all read
        # before one is written; two tiles of a head share none where the rows are written over.
        (num, width), heads, zero = grad.shape, dots.shape[1], zeros(tile, bias)
        head_width = width // heads
        for i in range(start * BLOCK_ROWS, min(stop * BLOCK_ROWS, num)):
            for h in range(heads):
                column = h * head_width
                given, result = load(tile, grad, i * width + column), load(tile, out, i * width + column)
                row = choose(greater(result, zero), scale(given, factor), zero)
                store(tile, grad_feats, i * width + column, row)
                rest = mul(row, load(tile, bias, column))
                add_by_head(tile, sub(mul(given, result), rest), dots, i * heads + h)
                add_to(tile, sums, i // BLOCK_ROWS * width + column, row)

    return through_rows


def head_dots(left: np.ndarray, right: np.ndarray, heads: int) -> np.ndarray:
    """Dot products of the rows of two arrays, head by head.

    Args: left float32, float64 or bfloat16 (uint16) [N, H * F]; right the same, or one [N, F] for all heads, in
        any pairing that is summed alike; heads: H.
    Returns: [N, H], float32 for bfloat16.
    Raises: ValueError on shapes and dtypes.
    """
    left, right = row_array(left, "left", ROWS), row_array(right, "right", ROWS)
    shared = heads > 1 and right.shape == (len(left), left.shape[1] // heads)
    if not (shared or right.shape == left.shape) or heads < 1 or left.shape[1] % heads:
        raise ValueError(f"left and right must be rows of {heads} heads each, got {left.shape} and {right.shape}")
    dtype = sums_dtype(left)
    if sums_dtype(right) != dtype:
        raise ValueError(f"left and right must be summed alike, got {left.dtype} and {right.dtype}")
    out = np.zeros((len(left), heads), dtype)
    if left.shape[1]:
        width = left.shape[1] // heads
        for tile in head_tiles(heads, width, np.dtype(dtype)):
            other = for_all_heads(tile, width) if shared else tile
            run(_dot_kernel(tile, other), even_chunks(*left.shape), left, right, out)
    return out


def head_scores(feats: np.ndarray, rows: np.ndarray, heads: int) -> np.ndarray:
    """Dot products of rows with a few others, head by head: what `head_dots` gives for each, in one pass.

    Args: feats float32, float64 or bfloat16 (uint16) [N, H * F]; rows [S, H * F] in the dtype they are summed in.
    Returns: [S, N, H].
    Raises: ValueError on shapes and dtypes.
    """
    feats, rows = row_array(feats, "feats", ROWS), row_array(rows, "rows")
    if rows.shape[1] != feats.shape[1] or heads < 1 or feats.shape[1] % heads or rows.dtype != sums_dtype(feats):
        raise ValueError(f"rows {rows.dtype} {rows.shape} do not fit {heads} heads of {feats.dtype} {feats.shape}")
    out = np.zeros((len(rows), len(feats), heads), rows.dtype)
    if feats.shape[1]:
        for tile in head_tiles(heads, feats.shape[1] // heads, rows.dtype):
            run(_score_kernel(tile), even_chunks(*feats.shape), feats, rows, out)
    return out


def head_outer(feats: np.ndarray, rows: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Add to rows of `feats`, in place, other rows times one number per row and head.

    Args: feats float32, float64 or bfloat16 (uint16) [N, H * F]; rows [S, H * F] and factors [S, N, H] in the dtype
        they are summed in.
    Returns: feats.
    Raises: ValueError on shapes and dtypes.
    """
    feats = output(feats, np.shape(feats), feats.dtype, "feats")
    rows, factors = row_array(rows, "rows"), np.ascontiguousarray(factors)
    heads = factors.shape[2] if factors.ndim == 3 else 0
    fits = factors.shape == (len(rows), len(feats), heads) and rows.shape[1] == feats.shape[1] and heads > 0
    if not fits or feats.shape[1] % heads or {rows.dtype, factors.dtype} != {np.dtype(sums_dtype(feats))}:
        raise ValueError(
            f"rows {rows.dtype} {rows.shape} and factors {factors.dtype} {factors.shape} do not fit feats {feats.shape}"
        )
    for tile in tiles_of_whole_heads(heads, feats.shape[1] // heads, rows.dtype):
        run(_outer_kernel(tile), even_chunks(*feats.shape), feats, rows, factors)
    return feats


def head_mean(
    feats: np.ndarray,
    heads: int,
    bias: np.ndarray | None = None,
    *,
    out: np.ndarray | None = None,
    short: np.ndarray | None = None,
) -> np.ndarray:
    """Mean of rows over their heads.

    Args: feats float32 or float64 [N, H * F]; heads: H; bias [F] or None; out [N, F]; short bfloat16 (uint16)
        [N, H * F]: where to write the rows, of float32, as well.
    Returns: out.
    Raises: ValueError on shapes and dtypes.
    """
    feats = row_array(feats, "feats")
    if heads < 1 or feats.shape[1] % heads:
        raise ValueError(f"feats must be rows of {heads} heads, got {feats.shape}")
    if short is not None and feats.dtype != np.float32:
        raise ValueError(f"rows are written in bfloat16 from float32, not from {feats.dtype}")
    width = feats.shape[1] // heads
    bias = vector(np.zeros(width) if bias is None else bias, width, feats.dtype, "bias")
    out = output(out, (len(feats), width), feats.dtype)
    if width:
        narrow = short is not None
        short = output(short, feats.shape, np.uint16, "short") if narrow else np.empty((0, 0), np.uint16)
        for tile in head_tiles(1, width, feats.dtype):
            work = feats, feats.dtype.type(1 / heads), bias, out, short
            run(_mean_kernel(tile, narrow), even_chunks(*feats.shape), *work)
    return out


def for_all_heads(tile: Tile, width: int) -> Tile:
    """The tile's vectors in a row [F] that stands for all heads."""
    offsets = tuple(offset - head * width for offset, head in zip(tile.offsets, tile.heads, strict=True))
    return Tile(tile.lanes, offsets, tile.heads, skip=tile.skip)


def tiles_of_whole_heads(heads: int, width: int, dtype: DTypeLike) -> Iterator[Tile]:
    """Tiles that share no column, half of the registers each: what is added in place must not be added twice."""
    # Tiles of `head_tiles` may share columns where a head's width is no multiple of the lanes: right for a result that
    # is written, wrong for one that is added to. Here a head's overlap lies within one tile, which is read whole before
    # it is written.
    one = head_tiles(1, width, dtype, half=True)  # a head's last two vectors may overlap, but stand in one tile
    together = max(1, registers()[1] // 2 // one[0].vectors) if len(one) == 1 else 1
    for first in range(0, heads, together):
        group = range(first, min(first + together, heads))
        for tile in one:
            offsets = tuple(head * width + offset for head in group for offset in tile.offsets)
            yield Tile(tile.lanes, offsets, tuple(head for head in group for _ in tile.offsets))


@functools.cache
def _dot_kernel(tile: Tile, other: Tile | None) -> Callable:
    @kernel(counted=False)
    def dot_rows(start, stop, left, right, out):
        """Adds the tile's share to out[start:stop]."""
        width, other_width, heads = left.shape[1], right.shape[1], out.shape[1]
        for i in range(start, stop):
            add_by_head(tile, mul(load(tile, left, i * width), load(other, right, i * other_width)), out, i * heads)

    return dot_rows


@functools.cache
def _score_kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def score_rows(start, stop, feats, rows, out):
        """Adds the tile's share to out[:, start:stop]."""
        width, heads, count, num = feats.shape[1], out.shape[2], rows.shape[0], feats.shape[0]
        for i in range(start, stop):
            row = load(tile, feats, i * width)
            for s in range(count):
                add_by_head(tile, mul(row, load(tile, rows, s * width)), out, (s * num + i) * heads)

    return score_rows


@functools.cache
def _outer_kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def outer_rows(start, stop, feats, rows, factors):
        """Writes the tile's columns of feats[start:stop]."""
        width, heads, count, num = feats.shape[1], factors.shape[2], rows.shape[0], feats.shape[0]
        for i in range(start, stop):
            row = load(tile, feats, i * width)
            for s in range(count):
                row = fma_heads(tile, load(tile, rows, s * width), factors, (s * num + i) * heads, row)
            store(tile, feats, i * width, row)

    return outer_rows


@functools.cache
def _mean_kernel(tile: Tile, narrow: bool) -> Callable:
    @kernel(counted=False)
    def mean_rows(start, stop, feats, share, bias, out, short):
        """Writes the tile's columns of each head of out[start:stop] and, if narrow, short[start:stop]."""
        full, width = feats.shape[1], out.shape[1]
        for i in range(start, stop):
            row = load(tile, feats, i * full)
            if narrow:
                store(tile, short, i * full, row)
            for column in range(width, full, width):
                more = load(tile, feats, i * full + column)
                row = add(row, more)
                if narrow:
                    store(tile, short, i * full + column, more)
            store(tile, out, i * width, add(scale(row, share), load(tile, bias, 0)))

    return mean_rows
