"""Values on arcs from the rows at their ends, and their softmax over the arcs of a target.

    dot   out[e, h] = ⟨source_rows[indices[e], h], target_rows[i, h]⟩    for each arc e of target row i and head h
    add   out[e]    = source_rows[indices[e]] + target_rows[i]
    mul   out[e]    = source_rows[indices[e]] * target_rows[i]
    edge_softmax    out[e, h] = exp(scores[e, h]) / Σ exp(scores[e', h]) over the arcs e' of the same row

With `edge_ids`, what belongs to CSR position e stands in row edge_ids[e]. The dot is the gradient of a weighted sum
with respect to its edge weights.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.arrays import ROWS, flat_rows, index_array, indptr_array, output, row_array, sums_dtype
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import edge_chunks, run
from distgnn.kernels.runtime.tiles import Tile, cut_tile, row_tiles
from distgnn.kernels.runtime.tuning import arcs_ahead
from distgnn.kernels.simd.vector_math import exp, reciprocal, total
from distgnn.kernels.simd.vectors import add, at, full, load, maximum, mul, prefetch, store, sub, zeros
from distgnn.kernels.wire.gather import pack_rows

OPERATIONS = ("dot", "add", "mul")


def sddmm(
    indptr: np.ndarray,
    indices: np.ndarray,
    source_rows: np.ndarray,
    target_rows: np.ndarray,
    op: str = "dot",
    out: np.ndarray | None = None,
    *,
    edge_ids: np.ndarray | None = None,
) -> np.ndarray:
    """Combine the source row and the target row of every arc.

    Args: indptr int [R + 1]; indices int32 or int64 [E]; source_rows [N, D] or [N, H, F] and target_rows [R, …] of
        one dtype: float32, float64 or bfloat16 (uint16); op dot, add or mul; edge_ids [E]: CSR position -> place in
        `out`, each at most once; out [E] (dot), [E, H] (dot of [N, H, F]) or [E, …] (add, mul).
    Returns: out; a new one is as long as the largest edge id needs, zero where no arc writes.
    Raises: ValueError on shapes and dtypes.
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    source_rows, target_rows = np.asarray(source_rows), np.asarray(target_rows)
    if op not in OPERATIONS:
        raise ValueError(f"op must be one of {', '.join(OPERATIONS)}, got {op!r}")
    tail = source_rows.shape[1:]
    if source_rows.dtype != target_rows.dtype or tail != target_rows.shape[1:] or len(tail) not in (1, 2):
        raise ValueError("source_rows and target_rows must have one dtype and the same shape of rows")
    if len(target_rows) != len(indptr) - 1:
        raise ValueError(f"target_rows must have {len(indptr) - 1} rows, got {len(target_rows)}")
    # A dot product must count every column once: tiles whose last vector is cut, not moved back over its neighbour.
    heads = tail[0] if op == "dot" and len(tail) == 2 else 1
    width = int(np.prod(tail))
    source_rows = row_array(source_rows.reshape(-1, width), "source_rows", ROWS)
    target_rows = row_array(target_rows.reshape(-1, width), "target_rows", ROWS)
    ids = np.empty(0, np.int64) if edge_ids is None else index_array(edge_ids, "edge_ids")
    shape = (max(len(indices), int(ids.max(initial=-1)) + 1), *(tail[:-1] if op == "dot" else tail))
    out = output(out, out.shape if out is not None else shape, sums_dtype(source_rows), zero=True)
    if op != "dot":
        span, targets = slice(indptr[0], indptr[-1]), np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        room = len(targets), width
        left = pack_rows(source_rows, indices[span], np.empty(room, out.dtype))
        right = pack_rows(target_rows, targets, np.empty(room, out.dtype))
        places = ids[span] if len(ids) else span
        out.reshape(len(out), width)[places] = left + right if op == "add" else left * right
        return out
    flat = out.reshape(len(out), -1) if len(out) else out.reshape(0, 1)
    bounds = edge_chunks(indptr, width)
    for column, tile in row_tiles(width // heads, out.dtype) if width else []:
        ahead, function = arcs_ahead(tile.width * source_rows.itemsize), _dot_kernel(cut_tile(tile.lanes, tile.width))
        run(function, bounds, column, ahead, indptr, indices, source_rows, target_rows, ids, flat, heads)
    return out


@functools.cache
def _dot_kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def dot_rows(start, stop, column, ahead, indptr, indices, source_rows, target_rows, edge_ids, out, heads):
        """Writes (first columns) or adds to the arcs of rows [start, stop)."""
        # Plainly: out[edge, head] = (source_rows[j, head] * target_rows[i, head]).sum(); further tiles add their share.
        width, last = source_rows.shape[1], indptr[stop] - 1
        head_width = width // heads
        for i in range(start, stop):
            for e in range(indptr[i], indptr[i + 1]):
                edge = edge_ids[e] if edge_ids.shape[0] else e
                for head in range(heads):
                    first = head * head_width + column
                    prefetch(tile, source_rows, at(indices, min(e + ahead, last)) * width + first)
                    source = load(tile, source_rows, at(indices, e) * width + first)
                    value = total(mul(source, load(tile, target_rows, i * width + first)))
                    out[edge, head] = value if column == 0 else out[edge, head] + value

    return dot_rows


def edge_softmax(
    indptr: np.ndarray, scores: np.ndarray, out: np.ndarray | None = None, *, edge_ids: np.ndarray | None = None
) -> np.ndarray:
    """Softmax of scores over the arcs of each target row, head by head.

    Args: indptr int [R + 1]; scores float32 or float64 [E] or [E, H], by edge_ids [E] if given; out like scores, may
        be `scores` itself.
    Returns: out.
    """
    return _softmax(_softmax_kernel, indptr, edge_ids, out, scores)


def edge_softmax_backward(
    indptr: np.ndarray,
    out: np.ndarray,
    grad: np.ndarray,
    grad_scores: np.ndarray | None = None,
    *,
    edge_ids: np.ndarray | None = None,
) -> np.ndarray:
    """Gradient of `edge_softmax`: out * (grad - Σ out * grad over the arcs of the row).

    Args: as edge_softmax; out: its result; grad like out; grad_scores like out, may be `grad` itself.
    Returns: grad_scores.
    """
    return _softmax(_softmax_backward_kernel, indptr, edge_ids, grad_scores, out, grad)


def _softmax(
    make_kernel: Callable,
    indptr: np.ndarray,
    edge_ids: np.ndarray | None,
    result: np.ndarray | None,
    *inputs: np.ndarray,
) -> np.ndarray:
    shape = np.shape(inputs[0])
    if any(np.shape(a) != shape for a in inputs):
        raise ValueError(f"scores and gradients must have one shape, got {[np.shape(a) for a in inputs]}")
    indptr, flat = indptr_array(indptr), [row_array(flat_rows(np.asarray(a)), "scores") for a in inputs]
    ids = np.empty(0, np.int64) if edge_ids is None else index_array(edge_ids, "edge_ids")
    result = output(result, shape, flat[0].dtype, zero=True)
    bounds = edge_chunks(indptr, flat[0].shape[1])
    for column, tile in row_tiles(flat[0].shape[1], flat[0].dtype):
        run(make_kernel(tile), bounds, column, indptr, ids, *flat, result.reshape(flat[0].shape))
    return result


@functools.cache
def _softmax_kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def softmax_rows(start, stop, column, indptr, edge_ids, scores, out):
        """Writes the arcs of rows [start, stop)."""
        heads = scores.shape[1]
        for i in range(start, stop):
            # Three passes over a row's arcs: maximum, exponentials and their sum, division. Scores of a row are few and
            # stay in the cache; heads are lanes, so all heads of an arc are one vector.
            top, sums = full(tile, scores, -np.inf), zeros(tile, scores)
            for e in range(indptr[i], indptr[i + 1]):
                first = (edge_ids[e] if edge_ids.shape[0] else e) * heads + column
                top = maximum(top, load(tile, scores, first))
            for e in range(indptr[i], indptr[i + 1]):
                first = (edge_ids[e] if edge_ids.shape[0] else e) * heads + column
                power = exp(sub(load(tile, scores, first), top))
                sums = add(sums, power)
                store(tile, out, first, power)
            factor = reciprocal(sums)
            for e in range(indptr[i], indptr[i + 1]):
                first = (edge_ids[e] if edge_ids.shape[0] else e) * heads + column
                store(tile, out, first, mul(load(tile, out, first), factor))

    return softmax_rows


@functools.cache
def _softmax_backward_kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def softmax_backward_rows(start, stop, column, indptr, edge_ids, out, grad, grad_scores):
        """Writes the arcs of rows [start, stop)."""
        heads = out.shape[1]
        for i in range(start, stop):
            mean = zeros(tile, out)
            for e in range(indptr[i], indptr[i + 1]):
                first = (edge_ids[e] if edge_ids.shape[0] else e) * heads + column
                mean = add(mean, mul(load(tile, out, first), load(tile, grad, first)))
            for e in range(indptr[i], indptr[i + 1]):
                first = (edge_ids[e] if edge_ids.shape[0] else e) * heads + column
                value = mul(load(tile, out, first), sub(load(tile, grad, first), mean))
                store(tile, grad_scores, first, value)

    return softmax_backward_rows
