"""Rows as bytes on the wire: float32, bfloat16, int8 and int4, packed and unpacked in one pass.

The formats are in `distgnn/config/schedule.py`. A row's scale (float32) stands behind its codes. int4 keeps column 2 k
in the low and 2 k + 1 in the high half of byte k.

Codes are rounded at random without bias: floor(value / scale + u), u from the generator of random_vectors.py, keyed by
(seed, step, site, global row id, column), so the bits do not depend on ranks or threads.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.config.schedule import WIRES, row_bytes
from distgnn.kernels.runtime.arrays import index_array, output, row_array
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.simd.random_vectors import (
    BELOW,
    GROUP,
    ROUNDING_TAG,
    derive_key,
    each_group,
    fractions,
    group_tiles,
    kernel_width,
    row_words,
)
from distgnn.kernels.simd.vector_math import floor, largest
from distgnn.kernels.simd.vectors import add, load, scale, store
from distgnn.kernels.wire.gather import pack_rows


def encode_rows(
    feats: np.ndarray,
    rows: np.ndarray,
    wire: str,
    out: np.ndarray | None = None,
    *,
    row_ids: np.ndarray | None = None,
    seed: int = 0,
    step: int = 0,
    site: int = 0,
) -> np.ndarray:
    """out[i] = bytes of feats[rows[i]].

    Args: feats float32 [N, D]; rows int [M] in [0, N), not checked; wire: see above; out uint8 [M, row_bytes];
        row_ids int [N] global ids and (seed, step, site): for int8 and int4.
    Returns: out.
    """
    feats, rows = row_array(feats, dtypes=(np.float32,)), index_array(rows, "rows")
    width = feats.shape[1]
    out = output(out, (len(rows), row_bytes(width, wire)), np.uint8)
    if not WIRES[wire].levels:
        pack_rows(feats, rows, out.view(np.float32 if wire == "float32" else np.uint16))
        return out
    if row_ids is None or len(row_ids) != len(feats):
        raise ValueError(f"wire={wire!r} needs row_ids, one for each of the {len(feats)} rows")
    scales, ids = np.empty(len(rows), np.float32), index_array(row_ids, "row_ids")
    key = derive_key(seed, step, site, ROUNDING_TAG)
    arguments = feats, rows, ids, np.float32(WIRES[wire].levels * BELOW), *key, out, scales, wire == "int4"
    run(_encode_kernel(kernel_width(width)), even_chunks(len(rows), width), *arguments)
    out[:, -4:] = scales.view(np.uint8).reshape(-1, 4)
    return out


def decode_rows(packed: np.ndarray, wire: str, out: np.ndarray) -> np.ndarray:
    """out[i] = the row that packed[i] stands for.

    Args: packed uint8 [M, row_bytes]; out float32 [M, D].
    Returns: out.
    """
    out = output(out, out.shape, np.float32)
    num_rows, width = out.shape
    packed = row_array(packed, "packed", (np.uint8,))
    if packed.shape != (num_rows, row_bytes(width, wire)):
        raise ValueError(f"packed must have shape {(num_rows, row_bytes(width, wire))}, got {packed.shape}")
    if not WIRES[wire].levels:
        # Bytes of a float format are its rows: a view, no pass over them.
        values = packed.view(np.float32 if wire == "float32" else np.uint16)
        return pack_rows(values, np.arange(num_rows), out)
    # The scale stands behind the codes at any alignment: copied out once, so that the kernel reads aligned floats.
    scales = packed[:, -4:].copy().view(np.float32)[:, 0]
    run(_decode_kernel(kernel_width(width)), even_chunks(num_rows, width), packed, scales, out, wire == "int4")
    return out


@inline(counted=False)
def _encode_group(tile, column, feats, first, row_id, factor, k0, k1, stream, codes):
    chance = fractions(tile, row_words(row_id, column, stream, k0, k1), feats)
    store(tile, codes, column, floor(add(scale(load(tile, feats, first + column), factor), chance)))


@functools.cache
def _encode_kernel(wide: int) -> Callable:
    whole, part = group_tiles(wide)

    @kernel
    def encode(start, stop, feats, rows, ids, levels, k0, k1, stream, out, scales, halves):
        """Writes codes of out[start:stop] and scales[start:stop]."""
        # Plainly, for a row:
        #     factor = levels / max(abs(row));  code = floor(row * factor + u), u uniform in [0, 1)
        # floor(x + u) is x rounded up with the probability of its fraction: the mean of many roundings is x.
        width, end = feats.shape[1], feats.shape[1] // GROUP * GROUP
        codes = np.zeros(width + 1, np.int8)
        for i in range(start, stop):
            first, row_id, top = rows[i] * width, ids[rows[i]], np.float32(0)
            if whole is not None:
                for column in range(0, end, GROUP):
                    top = max(top, largest(load(whole, feats, first + column)))
            if part is not None:
                top = max(top, largest(load(part, feats, first + end)))
            # A row of zeros: factor 0, codes 0, scale 0.
            factor = levels / top if top > 0 else np.float32(0)
            scales[i] = top / levels
            arguments = feats, first, row_id, factor, k0, k1, stream, codes
            each_group(whole, part, _encode_group, width, *arguments)
            if halves:
                # Two codes in a byte: column 2 k in the low four bits, 2 k + 1 in the high ones; codes[width] is 0.
                for k in range((width + 1) // 2):
                    out[i, k] = (codes[2 * k] & 15) | ((codes[2 * k + 1] & 15) << 4)
            else:
                for k in range(width):
                    out[i, k] = codes[k]

    return encode


@inline(counted=False)
def _decode_group(tile, column, codes, factor, out, first):
    store(tile, out, first + column, scale(load(tile, codes, column), factor))


@functools.cache
def _decode_kernel(wide: int) -> Callable:
    whole, part = group_tiles(wide)

    @kernel
    def decode(start, stop, packed, scales, out, halves):
        """Writes out[start:stop]."""
        width = out.shape[1]
        codes = np.zeros(width + 1, np.int8)
        for i in range(start, stop):
            if halves:
                for k in range((width + 1) // 2):
                    # (x ^ 8) - 8 is the sign of a four-bit number without a branch: 0 … 7 stay, 8 … 15 become -8 … -1.
                    byte = np.int32(packed[i, k])
                    codes[2 * k] = ((byte & 15) ^ 8) - 8
                    codes[2 * k + 1] = ((byte >> 4) ^ 8) - 8
            else:
                for k in range(width):
                    codes[k] = np.int8(packed[i, k])
            each_group(whole, part, _decode_group, width, codes, scales[i], out, i * width)

    return decode
