"""The kernels of attention.py that go over rows: what the backward pass gathers, sums of its parts, merged results.

Legend: H heads.
"""

import functools

import numpy as np

from distgnn.kernels.attention.attention_kernels import STATE
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.simd.vector_math import reciprocal
from distgnn.kernels.simd.vectors import add, load, store


@functools.cache
def state_kernel(heads_tile):
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
def parts_kernel(heads_tile):
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
