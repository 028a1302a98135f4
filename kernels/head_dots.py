"""Dot products of equal rows, head by head: out[i, h] = Σ_k left[i, h, k] * right[i, h, k]."""

import functools

import numpy as np

from .arrays import ROWS, output, row_array, sums_dtype
from .jit import kernel
from .threads import even_chunks, run
from .tiles import head_tiles
from .vector_math import add_by_head
from .vectors import load, mul


def head_dots(left, right, heads, out=None):
    """Dot products of the rows of two arrays, head by head.

    Args: left, right float32, float64 or bfloat16 (uint16) [N, H * F], in any pairing that is summed alike; heads: H;
        out [N, H].
    Returns: out, float32 for bfloat16.
    Raises: ValueError on shapes and dtypes.
    """
    left, right = row_array(left, "left", ROWS), row_array(right, "right", ROWS)
    if left.shape != right.shape or heads < 1 or left.shape[1] % heads:
        raise ValueError(f"left and right must be rows of {heads} heads each, got {left.shape} and {right.shape}")
    dtype = sums_dtype(left)
    if sums_dtype(right) != dtype:
        raise ValueError(f"left and right must be summed alike, got {left.dtype} and {right.dtype}")
    out = output(out, (len(left), heads), dtype)
    out[:] = 0
    if left.shape[1]:
        for tile in head_tiles(heads, left.shape[1] // heads, np.dtype(dtype)):
            run(_dot_kernel(tile), even_chunks(*left.shape), left, right, out)
    return out


@functools.cache
def _dot_kernel(tile):
    @kernel
    def dot_rows(start, stop, left, right, out):
        """Adds the tile's share to out[start:stop]."""
        width, heads = left.shape[1], out.shape[1]
        for i in range(start, stop):
            add_by_head(tile, mul(load(tile, left, i * width), load(tile, right, i * width)), out, i * heads)

    return dot_rows
