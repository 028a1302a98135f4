"""Rows moved between arrays, in the same pass as their conversion to and from bfloat16.

    pack   out[i] = feats[rows[i]]              what an exchange sends
    add    out[rows[i]] += packed[i]            what it does with what arrives

Either side may be bfloat16 (uint16 bit patterns) where the other is float32; sums are float32. Formats with a scale
per row are in codecs.py.
"""

import numpy as np

from distgnn.kernels.runtime.arrays import ROWS, index_array, output, row_array, sums_dtype
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import add, load, prefetch, rolled, store

# Rows asked for before they are copied: a row goes through once, so a short distance is enough.
AHEAD = 8
LANES = 16
LINE, EIGHT, FOUR, TWO, ONE = (Tile(lanes, (0,), (0,)) for lanes in (LANES, 8, 4, 2, 1))


def pack_rows(feats: np.ndarray, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """out[i] = feats[rows[i]].

    Args: feats float32, float64 or bfloat16 (uint16) [N, D]; rows int [M] in [0, N), not checked; out [M, D]: of
        feats' dtype, or bfloat16 for float32 (rounded to nearest even) and the other way round.
    Returns: out.
    """
    feats, rows = row_array(feats, dtypes=ROWS), index_array(rows, "rows")
    shape = len(rows), feats.shape[1]
    out = output(out, shape, _allowed(out, feats))
    run(_pack, even_chunks(*shape), feats, rows, out)
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
    run(_add_to, even_chunks(*packed.shape), out, rows, packed)
    return out


def _allowed(out: np.ndarray | None, feats: np.ndarray) -> np.dtype:
    """out's dtype if it is summed like feats, else the dtype it should have had."""
    return out.dtype if out is not None and out.dtype in ROWS and sums_dtype(out) == sums_dtype(feats) else feats.dtype


@inline(counted=False)
def each_part(function, width, *args):
    """Calls function(tile, first column, *args) for all columns of a row: 16 at a time, then 8, 4, 2 and 1."""
    end = width // LANES * LANES
    for column in range(0, end, LANES):
        rolled()
        function(LINE, column, *args)
    if width & 8:
        function(EIGHT, end, *args)
        end += 8
    if width & 4:
        function(FOUR, end, *args)
        end += 4
    if width & 2:
        function(TWO, end, *args)
        end += 2
    if width & 1:
        function(ONE, end, *args)


@inline(counted=False)
def _ask_for(rows, first, width):
    for column in range(0, width, LANES):  # a constant: dividing by a number of bytes took as long as a short row
        rolled()
        prefetch(LINE, rows, first + column)


@inline(counted=False)
def _copy(tile, column, feats, source, out, first):
    store(tile, out, first + column, load(tile, feats, source + column))


@inline(counted=False)
def _add(tile, column, out, target, packed, first):
    row = add(load(tile, out, target + column), load(tile, packed, first + column))
    store(tile, out, target + column, row)


# Of any width: one kernel for each pair of dtypes. A row is asked for 8 turns before; load and store convert.
@kernel(counted=False)
def _pack(start, stop, feats, rows, out):
    """Writes out[start:stop]: out[i] = feats[rows[i]]."""
    width = feats.shape[1]
    for i in range(start, stop):
        _ask_for(feats, rows[min(i + AHEAD, stop - 1)] * width, width)
        each_part(_copy, width, feats, rows[i] * width, out, i * width)


@kernel(counted=False)
def _add_to(start, stop, out, rows, packed):
    """Writes out[rows[start:stop]]: out[rows[i]] += packed[i]. Each row at most once: no two threads write the same."""
    width = packed.shape[1]
    for i in range(start, stop):
        _ask_for(out, rows[min(i + AHEAD, stop - 1)] * width, width)
        each_part(_add, width, out, rows[i] * width, packed, i * width)
