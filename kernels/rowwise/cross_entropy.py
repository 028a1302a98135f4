"""Cross entropy of some rows in one pass over them, and its gradient in another.

    loss          = Σ over chosen rows of log(Σ_c exp(x[c] - top)) + Σ_c q[c] (top - x[c])   top = max over c of x[c]
    grad_logits   = factor * (exp(x[c] - top) / Σ_c exp(x[c] - top) - q[c]), and 0 in rows that are not chosen
    q[c]          = (1 - smoothing) [c = label] + smoothing / C

Legend: O rows, C classes, q the target: all of it at the label, but for the share `smoothing` that all classes share.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.arrays import empty_rows, index_array, output, row_array
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.runtime.tiles import Tile, cut_tile, registers
from distgnn.kernels.simd.vector_math import exp, highest, inside, total
from distgnn.kernels.simd.vectors import full, load, scale, store, sub, zeros

BLOCK_ROWS = 256  # rows whose losses are summed together: fixed, so that threads do not change bits
VECTORS = 4  # of a row, in registers at once
COST = 16  # elements of a plain sum that take as long as one logit
TOP, INVERSE = 0, 1  # what of a row the gradient needs


def cross_entropy(
    logits: np.ndarray, labels: np.ndarray, rows: np.ndarray, smoothing: float = 0.0
) -> tuple[np.float64, np.ndarray]:
    """The sum over chosen rows of the cross entropy of logits with labels.

    Args: logits float32 or float64 [O, C]; labels int [O]; rows bool [O]: the chosen ones, whose labels are from 0 to
        C - 1; smoothing: label smoothing, from 0 to 1.
    Returns: (sum, state [O, 2] for the gradient, of chosen rows only).
    Raises: ValueError on shapes and labels.
    Notes: losses in the dtype of logits, their sum in float64: same bits for any number of threads.
    """
    logits, labels, rows = _checked(logits, labels, rows)
    blocks = -(-len(logits) // BLOCK_ROWS)
    sums, outside = np.zeros(blocks), np.zeros(blocks, np.int64)
    state = empty_rows((len(logits), 2), logits.dtype)
    if logits.shape[1]:
        arguments = logits, labels, rows, logits.dtype.type(smoothing), sums, outside, state
        run(_sum_kernel(*_tiles(logits)), even_chunks(blocks, COST * BLOCK_ROWS * logits.shape[1]), *arguments)
    if outside.any() or (rows.any() and not logits.shape[1]):
        raise ValueError(f"labels must be from 0 to {logits.shape[1] - 1}: {outside.sum()} of chosen rows are not")
    return sums.sum(), state


def cross_entropy_backward(
    logits: np.ndarray,
    labels: np.ndarray,
    rows: np.ndarray,
    state: np.ndarray,
    factor: float,
    *,
    smoothing: float = 0.0,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Gradient of `factor` times `cross_entropy`, [O, C].

    Args: logits, labels, rows, smoothing: as they were; state: its second result; out [O, C].
    """
    logits, labels, rows = _checked(logits, labels, rows)
    out = output(out, logits.shape, logits.dtype)
    if logits.shape[1]:
        numbers = logits.dtype.type(factor), logits.dtype.type(smoothing)
        arguments = logits, labels, rows, row_array(state, "state"), *numbers, out
        run(_gradient_kernel(*_tiles(logits)), even_chunks(len(logits), COST * logits.shape[1]), *arguments)
    return out


def _checked(logits: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    logits, labels, rows = row_array(logits, "logits"), index_array(labels, "labels"), np.ascontiguousarray(rows)
    if rows.dtype != np.bool_ or not len(logits) == len(labels) == len(rows):
        raise ValueError(
            f"labels and rows (bool) must be {len(logits)}, got {len(labels)} and {rows.dtype} {len(rows)}"
        )
    return logits, labels, rows


def _tiles(logits: np.ndarray) -> tuple[Tile, Tile, int]:
    """(tile of a group of columns, tile of those behind the last whole group, how many these are)."""
    lanes = registers()[0] // logits.dtype.itemsize
    rest = logits.shape[1] % (lanes * VECTORS)
    return cut_tile(lanes, lanes * VECTORS), cut_tile(lanes, rest or lanes * VECTORS), rest


@inline(counted=False)
def _power(tile, logits, first, top):
    """exp(x - top), and 0 beyond the row."""
    return inside(tile, exp(sub(load(tile, logits, first), full(tile, logits, top))))


@inline(counted=False)
def _below(tile, logits, first, top):
    """top - x, and 0 beyond the row."""
    return inside(tile, sub(full(tile, logits, top), load(tile, logits, first)))


@functools.cache
def _sum_kernel(whole: Tile, part: Tile, rest: int) -> Callable:
    group = whole.lanes * VECTORS

    @kernel(counted=False)
    def sum_rows(start, stop, logits, labels, rows, smoothing, sums, outside, state):
        """Writes sums and outside of row blocks [start, stop), and state of their chosen rows."""
        (num, width), zero = logits.shape, logits.dtype.type(0)
        end = width - rest
        for block in range(start, stop):
            for i in range(block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, num)):
                if not rows[i]:
                    continue
                if labels[i] < 0 or labels[i] >= width:
                    outside[block] += 1
                    continue
                top, power = logits[i, 0], zero
                for column in range(0, end, group):
                    top = max(top, highest(whole, load(whole, logits, i * width + column)))
                if rest > 0:
                    top = max(top, highest(part, load(part, logits, i * width + end)))
                for column in range(0, end, group):
                    power += total(_power(whole, logits, i * width + column, top))
                if rest > 0:
                    power += total(_power(part, logits, i * width + end, top))
                state[i, TOP], state[i, INVERSE] = top, logits.dtype.type(1) / power
                loss = top - logits[i, labels[i]]
                if smoothing > 0:  # a logit of -inf is 0 times inf without it
                    below = zero
                    for column in range(0, end, group):
                        below += total(_below(whole, logits, i * width + column, top))
                    if rest > 0:
                        below += total(_below(part, logits, i * width + end, top))
                    loss = (logits.dtype.type(1) - smoothing) * loss + smoothing / logits.dtype.type(width) * below
                sums[block] += np.float64(np.log(power) + loss)

    return sum_rows


@functools.cache
def _gradient_kernel(whole: Tile, part: Tile, rest: int) -> Callable:
    group = whole.lanes * VECTORS

    @kernel(counted=False)
    def gradient_rows(start, stop, logits, labels, rows, state, factor, smoothing, out):
        """Writes out[start:stop]."""
        width = logits.shape[1]
        end = width - rest
        all_classes = factor * smoothing / logits.dtype.type(width)
        label = factor * (logits.dtype.type(1) - smoothing)
        for i in range(start, stop):
            first = i * width
            if rows[i]:
                top, times = state[i, TOP], state[i, INVERSE] * factor
                for column in range(0, end, group):
                    row = scale(_power(whole, logits, first + column, top), times)
                    store(whole, out, first + column, sub(row, full(whole, logits, all_classes)))
                if rest > 0:
                    row = scale(_power(part, logits, first + end, top), times)
                    store(part, out, first + end, sub(row, full(part, logits, all_classes)))
                out[i, labels[i]] -= label
            else:
                for column in range(0, end, group):
                    store(whole, out, first + column, zeros(whole, out))
                if rest > 0:
                    store(part, out, first + end, zeros(part, out))

    return gradient_rows
