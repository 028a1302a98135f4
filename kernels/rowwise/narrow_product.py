"""Products of two tall arrays of which one has a few columns: the gradient of a weight of that width.

    narrow_product   out[k, j] = Σ_i rows[i, k] grads[i, j]

The wider one is read once, in order; all sums lie in the first cache, and are read and written once for four rows.

Legend: N rows, K columns (a few), J columns.
"""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from distgnn.kernels.runtime.arrays import ROWS, row_array, sums_dtype
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import run
from distgnn.kernels.runtime.tiles import Tile, cut_tile, registers, row_tiles
from distgnn.kernels.simd.vectors import fma, load, store

PARTS = 32  # partial sums: fixed, so that threads do not change bits
PART_ROWS = 256  # rows of a part at the least


def narrow_product(rows: np.ndarray, grads: np.ndarray) -> np.ndarray:
    """A few columns transposed times other rows, in the time it takes to read those.

    Args: rows float32 or float64 [N, K]; grads [N, J] of the same dtype, or bfloat16 (uint16) for float32.
    Returns: [K, J].
    Raises: ValueError on shapes and dtypes.
    Notes: as `inner_product`.
    """
    rows, grads = row_array(rows, "rows"), row_array(grads, "grads", ROWS)
    if len(rows) != len(grads) or rows.dtype != sums_dtype(grads):
        raise ValueError(f"rows {rows.dtype} {rows.shape} and grads {grads.dtype} {grads.shape} do not fit")
    sums = NarrowSums(len(rows), rows.shape[1], grads.shape[1], rows.dtype)
    sums.add(slice(0, sums.num_parts), rows, grads)
    return sums.sums.sum(axis=0)


class NarrowSums:
    """Sums of a narrow product over fixed parts of the rows, `bounds`, which may be added range by range."""

    def __init__(self, num_rows: int, num_columns: int, width: int, dtype: DTypeLike) -> None:
        self.num_parts = max(1, min(PARTS, num_rows // PART_ROWS))
        self.bounds = np.arange(self.num_parts + 1) * num_rows // self.num_parts
        self.sums = np.zeros((self.num_parts, num_columns, width), dtype)

    def add(self, parts: slice, rows: np.ndarray, grads: np.ndarray) -> None:
        """Some parts' sums, of their rows alone."""
        bounds, sums = self.bounds[parts.start : parts.stop + 1] - self.bounds[parts.start], self.sums[parts]
        if sums.size:
            for tile, columns in separate_tiles(grads.shape[1], rows.dtype):
                run(_narrow_kernel(tile), list(range(len(bounds))), bounds, rows, grads, columns, sums)


def most_vectors() -> int:
    return 4 if registers()[1] >= 16 else 2


def separate_tiles(width: int, dtype: DTypeLike) -> list:
    """(tile, first columns), where no column is in two tiles: the last vector of all may be cut."""
    lanes = row_tiles(width, dtype)[0][1].lanes
    # No column twice: these tiles are added to, so the last one is cut instead of moved back.
    columns = lanes * most_vectors()
    whole, rest = divmod(width, columns)
    tiles = [(cut_tile(lanes, columns), np.arange(whole) * columns)] if whole else []
    return [*tiles, (cut_tile(lanes, rest), np.array([whole * columns]))] if rest else tiles


@functools.cache
def _narrow_kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def narrow_rows(start, stop, bounds, rows, grads, columns, sums):
        """Adds the tiles' columns of sums[start:stop], each over its range of rows."""
        # Plainly: sums[k, j] += rows[i, k] * grads[i, j] over i. Four rows of grads are read once, in order, and all
        # sums, which stay in the first cache, once for them.
        depth, width = rows.shape[1], grads.shape[1]
        for part in range(start, stop):
            whole = bounds[part] + (bounds[part + 1] - bounds[part]) // 4 * 4
            for i in range(bounds[part], whole, 4):
                for column in columns:
                    a = load(tile, grads, i * width + column)
                    b = load(tile, grads, (i + 1) * width + column)
                    c = load(tile, grads, (i + 2) * width + column)
                    d = load(tile, grads, (i + 3) * width + column)
                    for k in range(depth):
                        place = (part * depth + k) * width + column
                        one = fma(b, rows[i + 1, k], fma(a, rows[i, k], load(tile, sums, place)))
                        store(tile, sums, place, fma(d, rows[i + 3, k], fma(c, rows[i + 2, k], one)))
            for i in range(whole, bounds[part + 1]):
                for column in columns:
                    a = load(tile, grads, i * width + column)
                    for k in range(depth):
                        place = (part * depth + k) * width + column
                        store(tile, sums, place, fma(a, rows[i, k], load(tile, sums, place)))

    return narrow_rows
