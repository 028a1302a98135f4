"""Dropout whose mask is a function of (seed, step, site, global row id, column): nothing is stored.

    out[i, k] = feats[i, k] / (1 - p)   where bits(seed, step, site, row_ids[i], k) >= round(65536 p), else 0

`bits` are the 16-bit words that philox.py lays out. The same call on the gradient is the backward pass.
"""

import numpy as np

from .arrays import index_array, output, row_array
from .jit import kernel
from .philox import GROUP, LANES, derive_key, philox
from .threads import even_chunks, run


def dropout(feats, row_ids, p, *, seed, step, site, out=None):
    """Drop elements with probability p and scale the rest by 1 / (1 - p).

    Args: feats float32 or float64 [N, D]; row_ids int [N], global ids; p in [0, 1]; seed, step, site: integers that
        name the draw; out [N, D], may be `feats` itself.
    Returns: out.
    Raises: ValueError if p is no probability.
    Notes: p is rounded to a multiple of 1/65536. Same bits for any number of threads and any row order.
    """
    feats, row_ids = row_array(feats), index_array(row_ids, "row_ids")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p must be in [0, 1], got {p}")
    if len(row_ids) != len(feats):
        raise ValueError(f"row_ids must have {len(feats)} entries, got {len(row_ids)}")
    out = output(out, feats.shape, feats.dtype)
    threshold, scale = mask_parameters(p, feats.dtype)
    run(
        _drop,
        even_chunks(len(feats), feats.shape[1]),
        feats,
        row_ids,
        threshold,
        scale,
        *derive_key(seed, step, site),
        out,
    )
    return out


def mask_parameters(p, dtype):
    """(16-bit threshold, scale of what is kept)."""
    return np.uint32(round(p * 65536)), np.dtype(dtype).type(1 / (1 - p) if p < 1 else 0)


@kernel
def _drop(start, stop, feats, row_ids, threshold, scale, k0, k1, stream, out):
    """Writes out[start:stop]."""
    width = feats.shape[1]
    bits = np.empty((8, LANES), np.uint32)
    for i in range(start, stop):
        row = np.uint64(row_ids[i])
        low, high = np.uint32(row), np.uint32(row >> np.uint64(32))
        for first in range(0, width, GROUP):
            for lane in range(LANES):
                block = np.uint32(first // GROUP * LANES + lane)
                w0, w1, w2, w3 = philox(block, low, high, stream, k0, k1)
                bits[0, lane], bits[1, lane] = w0 & np.uint32(0xFFFF), w0 >> np.uint32(16)
                bits[2, lane], bits[3, lane] = w1 & np.uint32(0xFFFF), w1 >> np.uint32(16)
                bits[4, lane], bits[5, lane] = w2 & np.uint32(0xFFFF), w2 >> np.uint32(16)
                bits[6, lane], bits[7, lane] = w3 & np.uint32(0xFFFF), w3 >> np.uint32(16)
            flat = bits.reshape(GROUP)
            for k in range(min(GROUP, width - first)):
                value = feats[i, first + k]
                out[i, first + k] = value * scale if flat[k] >= threshold else feats.dtype.type(0)
