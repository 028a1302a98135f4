"""Dot products on arcs, of the rows at their ends.

    out[e, h] = ⟨source_rows[indices[e], h], target_rows[i, h]⟩    for each arc e of target row i and head h

With `edge_ids`, what belongs to CSR position e stands in row edge_ids[e]. The dot is the gradient of a weighted sum
with respect to its edge weights.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.arrays import ROWS, index_array, indptr_array, output, row_array, sums_dtype
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import edge_chunks, run
from distgnn.kernels.runtime.tiles import Tile, cut_tile, row_tiles
from distgnn.kernels.runtime.tuning import arcs_ahead
from distgnn.kernels.simd.vector_math import total
from distgnn.kernels.simd.vectors import at, load, mul, prefetch


def sddmm(
    indptr: np.ndarray,
    indices: np.ndarray,
    source_rows: np.ndarray,
    target_rows: np.ndarray,
    out: np.ndarray | None = None,
    *,
    edge_ids: np.ndarray | None = None,
) -> np.ndarray:
    """The dot product of the source row and the target row of every arc.

    Args: indptr int [R + 1]; indices int32 or int64 [E]; source_rows [N, D] or [N, H, F] and target_rows [R, …] of
        one dtype: float32, float64 or bfloat16 (uint16); edge_ids [E]: CSR position -> place in `out`, each at most
        once; out [E], or [E, H] of [N, H, F].
    Returns: out; a new one is as long as the largest edge id needs, zero where no arc writes.
    Raises: ValueError on shapes and dtypes.
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    source_rows, target_rows = np.asarray(source_rows), np.asarray(target_rows)
    tail = source_rows.shape[1:]
    if source_rows.dtype != target_rows.dtype or tail != target_rows.shape[1:] or len(tail) not in (1, 2):
        raise ValueError("source_rows and target_rows must have one dtype and the same shape of rows")
    if len(target_rows) != len(indptr) - 1:
        raise ValueError(f"target_rows must have {len(indptr) - 1} rows, got {len(target_rows)}")
    # A dot product must count every column once: tiles whose last vector is cut, not moved back over its neighbour.
    heads = tail[0] if len(tail) == 2 else 1
    width = int(np.prod(tail))
    source_rows = row_array(source_rows.reshape(-1, width), "source_rows", ROWS)
    target_rows = row_array(target_rows.reshape(-1, width), "target_rows", ROWS)
    ids = np.empty(0, np.int64) if edge_ids is None else index_array(edge_ids, "edge_ids")
    shape = (max(len(indices), int(ids.max(initial=-1)) + 1), *tail[:-1])
    out = output(out, out.shape if out is not None else shape, sums_dtype(source_rows), zero=True)
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
