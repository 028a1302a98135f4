"""Maximum and minimum over the arcs of a row, and which arc gave it.

    max    out[i, k] = max_e feats[indices[e], k]

A minimum is the maximum of the negatives. Ties go to the first position of a row.

Their gradients, to one winner or to all equal ones:

    add_winners    out[places[winner[i, k]], k] += grad[i, k]
    count_ties     out[i, k] = number of e with feats[indices[e], k] == best[i, k]
    tied_sums      out[i, k] = sum of shares[indices[e], k] over e with feats[i, k] == best[indices[e], k]
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.arrays import empty_rows, output, sums_dtype
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import edge_chunks, even_chunks, run
from distgnn.kernels.runtime.tiles import Tile, registers, row_tiles
from distgnn.kernels.runtime.tuning import arcs_ahead
from distgnn.kernels.simd.vectors import (
    add,
    at,
    choose,
    equal,
    full,
    greater,
    load,
    prefetch,
    rolled,
    scale,
    store,
    zeros,
)
from distgnn.kernels.wire.gather import AHEAD, LANES, each_part


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


def add_winners(places: np.ndarray, winner: np.ndarray, grad: np.ndarray, out: np.ndarray) -> np.ndarray:
    """out[places[winner[i, k]], k] += grad[i, k] where winner[i, k] is not negative, in place.

    Args: places int [E]; winner int [R, D]; grad [R, D]; out [N, D] of grad's dtype.
    """
    width = winner.shape[1]
    # Two winners of a column may have one place, so each thread has columns of its own: whole cache lines of them.
    bounds = [min(LANES * part, width) for part in even_chunks(-(-width // LANES), LANES * len(winner))]
    run(_add_winners, bounds, places, winner, grad, out)
    return out


@kernel(counted=False)
def _add_winners(start, stop, places, winner, grad, out):
    """Writes out[:, start:stop]."""
    for i in range(len(winner)):
        for k in range(start, stop):
            e = winner[i, k]
            if e >= 0:
                out[places[e], k] += grad[i, k]


def count_ties(indptr: np.ndarray, indices: np.ndarray, feats: np.ndarray, best: np.ndarray) -> np.ndarray:
    """How many arcs of each row have its best value, column by column.

    Args: indptr int [R + 1]; indices int [E] in [0, N), not checked; feats float32 or float64 [N, D]; best [R, D].
    Returns: [R, D], in the dtype of the rows.
    """
    out = empty_rows(best.shape, feats.dtype)
    run(_count_ties, edge_chunks(indptr, feats.shape[1]), indptr, indices, feats, best, out)
    return out


def tied_sums(
    indptr: np.ndarray, indices: np.ndarray, feats: np.ndarray, best: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Each row's sum of shares of those rows at its arcs whose best value it has, column by column.

    Args: indptr int [R + 1]; indices int [E] in [0, N), not checked; feats [R, D]; best, shares [N, D]; float32 or
        float64.
    Returns: [R, D].
    """
    out = empty_rows(feats.shape, feats.dtype)
    run(_tied_sums, edge_chunks(indptr, 2 * feats.shape[1]), indptr, indices, feats, best, shares, out)
    return out


# Of any width, one kernel a dtype: a maximum's gradient waits for memory, not for registers.
@kernel(counted=False)
def _count_ties(start, stop, indptr, indices, feats, best, out):
    """Writes out[start:stop]."""
    last = at(indptr, stop) - 1
    for i in range(start, stop):
        each_part(_ties_of_row, feats.shape[1], i, last, indptr, indices, feats, best, out)


@inline(counted=False)
def _ties_of_row(tile, column, i, last, indptr, indices, feats, best, out):
    width = feats.shape[1]
    top, one, none = load(tile, best, i * width + column), full(tile, feats, 1), zeros(tile, feats)
    sums = none
    for e in range(at(indptr, i), at(indptr, i + 1)):
        rolled()
        prefetch(tile, feats, at(indices, min(e + AHEAD, last)) * width + column)
        value = load(tile, feats, at(indices, e) * width + column)
        sums = add(sums, choose(equal(value, top), one, none))
    store(tile, out, i * width + column, sums)


@kernel(counted=False)
def _tied_sums(start, stop, indptr, indices, feats, best, shares, out):
    """Writes out[start:stop]."""
    last = at(indptr, stop) - 1
    for i in range(start, stop):
        each_part(_sums_of_row, feats.shape[1], i, last, indptr, indices, feats, best, shares, out)


@inline(counted=False)
def _sums_of_row(tile, column, i, last, indptr, indices, feats, best, shares, out):
    width = feats.shape[1]
    value, none = load(tile, feats, i * width + column), zeros(tile, feats)
    sums = none
    for e in range(at(indptr, i), at(indptr, i + 1)):
        rolled()
        ahead = at(indices, min(e + AHEAD, last)) * width + column
        prefetch(tile, best, ahead)
        prefetch(tile, shares, ahead)
        first = at(indices, e) * width + column
        sums = add(sums, choose(equal(value, load(tile, best, first)), load(tile, shares, first), none))
    store(tile, out, i * width + column, sums)
