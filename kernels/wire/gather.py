"""Rows moved between arrays, in the same pass as their conversion to and from bfloat16.

    pack   out[i] = feats[rows[i]]              what an exchange sends
    add    out[rows[i]] += packed[i]            what it does with what arrives

Either side may be bfloat16 (uint16 bit patterns) where the other is float32; sums are float32. Formats with a scale
per row are in codecs.py.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.arrays import ROWS, index_array, output, row_array, sums_dtype
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.simd.philox import GROUP
from distgnn.kernels.simd.random_vectors import each_group, group_tiles, kernel_width
from distgnn.kernels.simd.vectors import add, load, prefetch, store

# Rows asked for before they are copied: a row goes through once, so a short distance is enough.
AHEAD = 8


def pack_rows(feats: np.ndarray, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """out[i] = feats[rows[i]].

    Args: feats float32, float64 or bfloat16 (uint16) [N, D]; rows int [M] in [0, N), not checked; out [M, D]: of
        feats' dtype, or bfloat16 for float32 (rounded to nearest even) and the other way round.
    Returns: out.
    """
    feats, rows = row_array(feats, dtypes=ROWS), index_array(rows, "rows")
    shape = len(rows), feats.shape[1]
    out = output(out, shape, _allowed(out, feats))
    run(_pack_kernel(kernel_width(shape[1])), even_chunks(*shape), feats, rows, out)
    return out


def add_rows(out: np.ndarray, rows: np.ndarray, packed: np.ndarray) -> np.ndarray:
    """out[rows[i]] += packed[i], in place.

    Args: out float32, float64 or bfloat16 (uint16) [N, D]; rows int [M] in [0, N), each at most once (threads would
        otherwise add to one row at the same time), not checked; packed [M, D]: of out's dtype, or float32 and
        bfloat16 in any pairing.
    Returns: out.
    """
    packed, rows = row_array(packed, "packed", ROWS), index_array(rows, "rows")
    out = output(out, (len(out), packed.shape[1]), _allowed(out, packed))
    if len(rows) != len(packed):
        raise ValueError(f"rows and packed must be equally long, got {len(rows)} and {len(packed)}")
    run(_add_kernel(kernel_width(packed.shape[1])), even_chunks(*packed.shape), out, rows, packed)
    return out


def _allowed(out: np.ndarray | None, feats: np.ndarray) -> np.dtype:
    """out's dtype if it is summed like feats, else the dtype it should have had."""
    return out.dtype if out is not None and out.dtype in ROWS and sums_dtype(out) == sums_dtype(feats) else feats.dtype


@inline(counted=False)
def _pack_group(tile, column, feats, source, coming, out, first):
    prefetch(tile, feats, coming + column)
    store(tile, out, first + column, load(tile, feats, source + column))


@functools.cache
def _pack_kernel(wide: int) -> Callable:
    whole, part = group_tiles(wide)

    @kernel(counted=False)
    def pack(start, stop, feats, rows, out):
        """Writes out[start:stop]."""
        width = feats.shape[1]
        for i in range(start, stop):
            # Plainly: out[i] = feats[rows[i]]. The row of 8 turns later is asked for now; load and store convert.
            source, coming = rows[i] * width, rows[min(i + AHEAD, stop - 1)] * width
            each_group(whole, part, _pack_group, width, feats, source, coming, out, i * width)

    return pack


@inline(counted=False)
def _add_group(tile, column, out, target, coming, packed, first):
    prefetch(tile, out, coming + column)
    row = add(load(tile, out, target + column), load(tile, packed, first + column))
    store(tile, out, target + column, row)


@functools.cache
def _add_kernel(wide: int) -> Callable:
    whole, part = group_tiles(wide)

    @kernel(counted=False)
    def add_to_rows(start, stop, out, rows, packed):
        """Writes out[rows[start:stop]]."""
        width, end = packed.shape[1], packed.shape[1] // GROUP * GROUP
        for i in range(start, stop):
            # Plainly: out[rows[i]] += packed[i]. Each row at most once, so no two threads write the same one.
            # Not by `each_group`, which takes 1.12 times as long here (47 columns; Zen 4).
            target, coming = rows[i] * width, rows[min(i + AHEAD, stop - 1)] * width
            if whole is not None:
                for column in range(0, end, GROUP):
                    _add_group(whole, column, out, target, coming, packed, i * width)
            if part is not None:
                _add_group(part, end, out, target, coming, packed, i * width)

    return add_to_rows
