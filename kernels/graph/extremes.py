"""Maximum and minimum over the arcs of a row, and which arc gave it.

    max    out[i, k] = max_e feats[indices[e], k]

A minimum is the maximum of the negatives. Ties go to the first position of a row.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.arrays import empty_rows, output, sums_dtype
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import edge_chunks, run
from distgnn.kernels.runtime.tiles import Tile, registers, row_tiles
from distgnn.kernels.runtime.tuning import arcs_ahead
from distgnn.kernels.simd.vectors import at, choose, full, greater, load, prefetch, rolled, scale, store


def extreme(
    indptr: np.ndarray,
    indices: np.ndarray,
    feats: np.ndarray,
    reduce: str,
    out: np.ndarray | None,
    keep_inf: bool,
    winners: bool = True,
) -> tuple[np.ndarray, np.ndarray | None]:
    """(out, winner) of checked arrays; see aggregate.spmm. Without winners registers hold twice as many columns."""
    shape, dtype = (len(indptr) - 1, feats.shape[1]), sums_dtype(feats)
    out = output(out, shape, dtype)
    winner = empty_rows(shape if winners else (0, shape[1]), np.int32 if indptr[-1] < 2**31 else np.int64)
    sign = dtype.type(1 if reduce == "max" else -1)
    arguments = indptr, indices, feats, out, winner, sign, keep_inf
    bounds = edge_chunks(indptr, shape[1])
    # Registers are shared by what is kept per column: the best value, and with winners its arc. So a pass covers half
    # of the columns of a sum.
    most = registers()[1] // (2 if winners else 1)
    for column, tile in row_tiles(shape[1], dtype, most) if shape[1] else []:
        ahead = arcs_ahead(tile.width * feats.itemsize)
        run(_extreme_kernel(tile, winners, reduce == "max"), bounds, column, ahead, *arguments)
    return out, winner if winners else None


@functools.cache
def _extreme_kernel(tile: Tile, winners: bool, is_max: bool) -> Callable:
    """The kernel for one tile of columns."""

    @kernel(counted=False)
    def extreme_rows(start, stop, column, ahead, indptr, indices, feats, out, winner, sign, keep_inf):
        """Writes the tile's columns of out[start:stop] and winner[start:stop]."""
        width, last, end = feats.shape[1], at(indptr, stop) - 1, at(indptr, start)
        for i in range(start, stop):
            # Plainly, for every column:
            #     if value > best: best, place = value, e
            # Which arc wins is as good as random, so a branch would be guessed wrong; `choose` takes both sides and
            # keeps one, for all lanes at once. A comparison with a NaN is false: a NaN never wins.
            first, end = end, at(indptr, i + 1)
            best = full(tile, feats, -np.inf)
            place = full(tile, winner, -1)
            for e in range(first, end):
                rolled()
                prefetch(tile, feats, at(indices, min(e + ahead, last)) * width + column)
                value = load(tile, feats, at(indices, e) * width + column)
                if not is_max:
                    value = scale(value, sign)
                better = greater(value, best)
                best = choose(better, value, best)
                if winners:
                    place = choose(better, full(tile, winner, e), place)
            # A row without arcs is 0, as in DGL; partial results that are merged later need the neutral element.
            if first == end and not keep_inf:
                best = full(tile, feats, 0)
            store(tile, out, i * width + column, scale(best, sign))
            if winners:
                store(tile, winner, i * width + column, place)

    return extreme_rows
