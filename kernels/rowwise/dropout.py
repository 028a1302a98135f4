"""Dropout whose mask is a function of (seed, step, site, global row id, column): nothing is stored.

    out[i, k] = feats[i, k] / (1 - p)   where bits(seed, step, site, row_ids[i], k) >= round(65536 p), else 0

`bits` are the 16-bit words that philox.py lays out. The same call on the gradient is the backward pass.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.arrays import ROWS, index_array, output, row_array, sums_dtype
from distgnn.kernels.runtime.formats import mask_parameters
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.simd.philox import derive_key
from distgnn.kernels.simd.random_vectors import at_least, each_group, group_tiles, kernel_width, row_words
from distgnn.kernels.simd.vectors import choose, load, scale, store, zeros


def dropout(
    feats: np.ndarray, row_ids: np.ndarray, p: float, *, seed: int, step: int, site: int, out: np.ndarray | None = None
) -> np.ndarray:
    """Drop elements with probability p and scale the rest by 1 / (1 - p).

    Args: feats float32, float64 or bfloat16 (uint16) [N, D]; row_ids int [N], global ids; p in [0, 1]; seed, step,
        site: integers that name the draw; out [N, D], may be `feats` itself.
    Returns: out.
    Raises: ValueError if p is no probability.
    Notes: p is rounded to a multiple of 1/65536. Same bits for any number of threads and any row order.
    """
    feats, row_ids = row_array(feats, dtypes=ROWS), index_array(row_ids, "row_ids")
    if len(row_ids) != len(feats):
        raise ValueError(f"row_ids must have {len(feats)} entries, got {len(row_ids)}")
    out = output(out, feats.shape, feats.dtype)
    threshold, factor = mask_parameters(p, sums_dtype(feats))
    key = derive_key(seed, step, site)
    wide, arguments = kernel_width(feats.shape[1]), (feats, row_ids, threshold, factor, *key, out)
    run(_drop_kernel(wide), even_chunks(*feats.shape), *arguments)
    return out


@inline(counted=False)
def _drop_group(tile, column, i, feats, row_ids, threshold, factor, k0, k1, stream, out):
    bits, first = row_words(row_ids[i], column, stream, k0, k1), i * feats.shape[1] + column
    row = scale(load(tile, feats, first), factor)
    store(tile, out, first, choose(at_least(tile, bits, threshold), row, zeros(tile, feats)))


@functools.cache
def _drop_kernel(wide: int) -> Callable:
    """The kernel of a `kernel_width`."""
    # Plainly: out[i, k] = feats[i, k] * factor if word(row_ids[i], k) >= threshold else 0. One draw gives 16-bit words
    # for 128 columns, so a row goes by groups of 128 and what is left: the words of a row do not depend on its
    # neighbours, its place or the thread.
    whole, part = group_tiles(wide)

    @kernel(counted=False)
    def drop_rows(start, stop, feats, row_ids, threshold, factor, k0, k1, stream, out):
        """Writes out[start:stop]."""
        arguments = feats, row_ids, threshold, factor, k0, k1, stream, out
        for i in range(start, stop):
            each_group(whole, part, _drop_group, feats.shape[1], i, *arguments)

    return drop_rows
