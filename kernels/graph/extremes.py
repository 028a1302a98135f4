"""Maximum and minimum over the arcs of a row, and which arc gave it.

    max    out[i, k] = max_e edge_weight[e] * source_scale[indices[e]] * feats[indices[e], k]

A minimum is the maximum of the negatives. Ties go to the first position of a row: with `edge_ids` rows are sorted by
them before.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.arrays import empty_rows, output, sums_dtype
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import edge_chunks, run
from distgnn.kernels.runtime.tiles import Tile, registers, row_tiles
from distgnn.kernels.runtime.tuning import arcs_ahead
from distgnn.kernels.simd.vectors import (
    at,
    choose,
    full,
    greater,
    load,
    prefetch,
    rolled,
    scale,
    store,
)


def extreme(
    indptr: np.ndarray,
    indices: np.ndarray,
    feats: np.ndarray,
    reduce: str,
    weight: np.ndarray,
    edge_ids: np.ndarray,
    source_scale: np.ndarray,
    out: np.ndarray | None,
    keep_inf: bool,
    winners: bool = True,
) -> tuple[np.ndarray, np.ndarray | None]:
    """(out, winner) of checked arrays; see aggregate.spmm. Without winners registers hold twice as many columns."""
    shape, dtype = (len(indptr) - 1, feats.shape[1]), sums_dtype(feats)
    out = output(out, shape, dtype)
    winner = empty_rows(shape if winners else (0, shape[1]), np.int32 if indptr[-1] < 2**31 else np.int64)
    order = None
    if len(edge_ids):
        order, span = np.arange(len(edge_ids)), slice(int(indptr[0]), int(indptr[-1]))
        rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
        order[span] = span.start + np.lexsort((edge_ids[span], rows))
        indices, weight = indices[order], weight[edge_ids[order]] if len(weight) else weight
    sign = dtype.type(1 if reduce == "max" else -1)
    arguments = indptr, indices, feats, weight, source_scale, out, winner, sign, keep_inf
    bounds = edge_chunks(indptr, shape[1])
    plain = reduce == "max" and len(weight) == len(source_scale) == 0
    # Registers are shared by what is kept per column: the best value, and with winners its arc. So a pass covers half
    # of the columns of a sum.
    most = registers()[1] // (2 if winners else 1)
    for column, tile in row_tiles(shape[1], dtype, most) if shape[1] else []:
        ahead = arcs_ahead(tile.width * feats.itemsize)
        run(_extreme_kernel(tile, winners, plain), bounds, column, ahead, *arguments)
    if order is not None and winners:
        winner[winner >= 0] = order[winner[winner >= 0]]
    return out, winner if winners else None


@functools.cache
def _extreme_kernel(tile: Tile, winners: bool, plain: bool) -> Callable:
    """The kernel for one tile of columns; plain: a maximum of the rows as they are."""

    @kernel(counted=False)
    def extreme_rows(
        start, stop, column, ahead, indptr, indices, feats, weight, source_scale, out, winner, sign, keep_inf
    ):
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
                j = at(indices, e)
                value = load(tile, feats, j * width + column)
                if not plain:
                    # A minimum is the maximum of the negatives: one kernel for both, the sign goes into the factor.
                    factor = sign * at(weight, e) if weight.shape[0] else sign
                    value = scale(value, factor * at(source_scale, j) if source_scale.shape[0] else factor)
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
