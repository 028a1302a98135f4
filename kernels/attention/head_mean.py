"""The mean over the heads of rows, and the rows in bfloat16 beside it, in one pass.

out[i, k] = Σ_h feats[i, h, k] / H + bias[k]          short[i] = feats[i]
"""

import functools

import numpy as np

from distgnn.kernels.check.checked import checked_once
from distgnn.kernels.runtime.arrays import output, row_array, vector
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.runtime.tiles import head_tiles
from distgnn.kernels.simd.vectors import add, load, scale, store


@checked_once
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
            run(_kernel(tile, narrow), even_chunks(*feats.shape), feats, feats.dtype.type(1 / heads), bias, out, short)
    return out


@functools.cache
def _kernel(tile, narrow):
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
