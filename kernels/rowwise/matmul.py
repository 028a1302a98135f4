"""Products of tall arrays with small ones, and of two tall arrays: the dense half of a layer.

product          out[i, j] = Σ_k rows[i, k] weight[k, j] + Σ_k more[i, k] more_weight[k, j]
inner_product    out[k, j] = Σ_i rows[i, k] grads[i, j]

Six rows times four registers of columns are summed at once, so each number that is read is used four or six times.
262,144 x 256 times 256 x 256 in float32, 2 cores of an AMD EPYC with AVX-512: 375 GFLOP/s (two such products summed:
423); torch's (MKL, which does not know this processor) 188. Transposed products, and AVX2: docs/internals/kernels.md.

Legend: N rows, K columns in, J columns out.
"""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from distgnn.kernels.rowwise.narrow_product import PARTS, NarrowSums, most_vectors, narrow_product, separate_tiles
from distgnn.kernels.runtime.arrays import (
    CACHE_LINE,
    ROWS,
    empty_rows,
    goes_past_caches,
    on_lines,
    output,
    row_array,
    sums_dtype,
    widened,
)
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import even_chunks, get_num_threads, run
from distgnn.kernels.runtime.tiles import Tile, registers, row_tiles
from distgnn.kernels.runtime.tuning import held_tuning
from distgnn.kernels.simd.vector_math import add_to, store_result
from distgnn.kernels.simd.vectors import at, fma, load, prefetch, store, zeros

TOGETHER = 6  # rows (or columns of `rows`) whose sums are in registers at once
SIX_AHEAD = 32  # rows ahead of which six columns are asked for
FEW_TILES = 4  # of gradients: for more of them six columns of rows are copied first
INNER_ROWS = 256  # rows whose sums stay in registers: fixed, as is what follows, so that threads do not change bits
PART_BYTES = 1 << 26
MOST_PIECES, PIECE_ROWS = 64, 1 << 12  # of rows that are made piece by piece, to be in the caches when they are read
SIX = Tile(8, (0,), (0,), TOGETHER)  # TOGETHER columns, in two pieces
EIGHT, ONE = Tile(8, (0,), (0,)), Tile(1, (0,), (0,))


def product(
    rows: np.ndarray,
    weight: np.ndarray,
    more: np.ndarray | None = None,
    more_weight: np.ndarray | None = None,
    *,
    out: np.ndarray | None = None,
    accumulate: bool = False,
) -> np.ndarray:
    """Rows times a weight, or the sum of two such products.

    Args: rows float32, float64 or bfloat16 (uint16) [N, K], weight [K, J], float32 for bfloat16; more [N, L] and
        more_weight [L, J], or None; out [N, J]: where to write; it may be `rows` or `more` itself; accumulate: add to
        `out` instead, which is float32 for bfloat16 rows.
    Returns: out, in the dtype of `rows`.
    Raises: ValueError on shapes and dtypes.
    Notes: a row's bits depend on that row only, not on N or the number of threads.
    """
    rows, weight = row_array(rows, "rows", ROWS), row_array(weight, "weight")
    more = rows[:, :0].copy() if more is None else row_array(more, "more", ROWS)
    more_weight = weight[:0] if more_weight is None else row_array(more_weight, "more_weight")
    for a, b in ((rows, weight), (more, more_weight)):
        if (
            len(a) != len(rows)
            or a.shape[1] != len(b)
            or b.shape[1] != weight.shape[1]
            or a.dtype != rows.dtype
            or b.dtype != sums_dtype(rows)
        ):
            raise ValueError(f"rows {a.dtype} {a.shape} and weight {b.dtype} {b.shape} do not fit {rows.shape}")
    out = output(out, (len(rows), weight.shape[1]), sums_dtype(rows) if accumulate else rows.dtype)
    if out.size:
        tile, columns = _equal_tiles(weight.shape[1], weight.dtype)
        panels, more_panels = _panels(weight, columns, tile), _panels(more_weight, columns, tile)
        together = held_tuning().product_rows  # they stay in the second cache
        each = together * (rows.shape[1] + more.shape[1]) * _cost(weight.shape[1])
        chunks = even_chunks(-(-len(rows) // together), each)
        over = accumulate or np.may_share_memory(out, rows) or np.may_share_memory(out, more)
        past = not over and out.dtype == weight.dtype and goes_past_caches(out)
        run(_product_kernel(tile), chunks, together, rows, panels, more, more_panels, columns, out, accumulate, past)
    return out


def inner_product(rows: np.ndarray, grads: np.ndarray) -> np.ndarray:
    """Rows transposed times other rows: the gradient of a weight.

    Args: rows float32, float64 or bfloat16 (uint16) [N, K], grads [N, J] of the same dtype.
    Returns: [K, J], float32 for bfloat16.
    Raises: ValueError on shapes and dtypes.
    Notes: same bits for any number of threads; memory: up to `PARTS` results.
    """
    rows, grads = row_array(rows, "rows", ROWS), row_array(grads, "grads", ROWS)
    if len(rows) != len(grads) or rows.dtype != grads.dtype:
        raise ValueError(f"rows {rows.dtype} {rows.shape} and grads {grads.dtype} {grads.shape} do not fit")
    return _in_pieces(lambda first, stop: rows[first:stop], rows.shape[1], [grads], 1)[0]


def inner_products(make: Callable, width: int, all_grads: list) -> list:
    """The same with several arrays [N, J] of one shape, of rows [N, K] that are made piece by piece.

    Args: make: (first, stop) to rows [stop - first, K] of the dtype of the others, which are done with when the next
        are made; width: K.
    Returns: [K, J] of each: the same bits as of rows that are there.
    """
    inner_product(np.empty((0, width), all_grads[0].dtype), all_grads[0][:0])  # it is checked there
    return _in_pieces(make, width, all_grads, MOST_PIECES)


def narrow_products(make: Callable, width: int, grads: np.ndarray) -> np.ndarray:
    """`narrow_product` of gradients with a few columns [N, J] and such rows, turned: [K, J]."""
    narrow_product(widened(grads[:0]), np.empty((0, width), grads.dtype))  # it is checked there
    return _in_pieces(make, width, [grads], MOST_PIECES, narrow=True)[0]


def _in_pieces(make: Callable, width: int, all_grads: list, most: int | None, narrow: bool = False) -> list[np.ndarray]:
    first_grads, dtype = all_grads[0], sums_dtype(all_grads[0])
    num_rows, columns = first_grads.shape
    narrow = narrow or columns < min(width, registers()[0] // dtype.itemsize)  # vectors run along the wider of the two
    kind: type = NarrowSums if narrow else _InnerSums
    sizes = (columns, width) if narrow else (width, columns)
    found = [kind(num_rows, *sizes, dtype) for _ in all_grads]
    num_parts, bounds = found[0].num_parts, found[0].bounds
    most = max(1, min(most, num_rows // PIECE_ROWS, num_parts // get_num_threads()))
    for piece in range(most):
        parts = slice(num_parts * piece // most, num_parts * (piece + 1) // most)
        first, stop = int(bounds[parts.start]), int(bounds[parts.stop])
        rows = make(first, stop)
        for sums, grads in zip(found, all_grads, strict=True):
            few = widened(grads[first:stop]) if narrow else widened(rows) if width < TOGETHER else rows
            pair = (few, rows) if narrow else (few, grads[first:stop])
            sums.add(parts, *pair)
        del rows, few, pair  # their memory is free for the next
    totals = [one.sums.sum(axis=0) for one in found]
    return [np.ascontiguousarray(one.T) for one in totals] if narrow else totals


class _InnerSums:
    """Sums of an inner product over fixed parts of the rows, `bounds`, which are added in order."""

    def __init__(self, num_rows: int, num_columns: int, width: int, dtype: DTypeLike) -> None:
        one = num_columns * width * np.dtype(dtype).itemsize
        blocks = -(-num_rows // INNER_ROWS)
        parts = self.num_parts = max(1, min(PARTS, blocks, PART_BYTES // max(one, 1)))
        self.bounds = np.array([blocks * part // parts * INNER_ROWS for part in range(parts)] + [num_rows])
        self.sums = np.zeros((parts, num_columns, width), dtype)

    def add(self, parts: slice, rows: np.ndarray, grads: np.ndarray) -> None:
        """Some parts' sums, of their rows alone."""
        bounds, sums = self.bounds[parts.start : parts.stop + 1] - self.bounds[parts.start], self.sums[parts]
        if sums.size:
            for tile, columns in separate_tiles(grads.shape[1], sums.dtype):
                chunks = even_chunks(len(sums), INNER_ROWS * rows.shape[1] * _cost(grads.shape[1]))
                copied = rows.dtype == np.uint16 or len(columns) > FEW_TILES
                run(_inner_kernel(tile, copied), chunks, bounds, rows, grads, columns, sums)


def _cost(columns: int) -> int:
    """Elements of a plain sum that take as long as one that meets this many columns of a weight."""
    return -(-columns // 4)


def _equal_tiles(width: int, dtype: DTypeLike) -> tuple[Tile, np.ndarray]:
    """(tile, first columns): tiles of one shape that cover a row; the last may overlap its neighbour."""
    # One shape of tile for all columns, the last one moved back: products that are written twice are the same. It needs
    # one compiled kernel and one layout of panels. It is of whole vectors where the row is wide enough: 47 need no
    # other kernel than 256.
    last = row_tiles(width, dtype, most_vectors())[-1][1]
    tile = row_tiles(min(width, last.lanes * last.vectors), dtype, most_vectors())[-1][1]
    return tile, np.array([*range(0, width - tile.width, tile.width), width - tile.width])


def _panels(weight: np.ndarray, columns: np.ndarray, tile: Tile) -> np.ndarray:
    """[tiles, K, columns of a tile]: a tile's columns of the weight side by side, each row at the start of a line."""
    span = tile.offsets[-1] + tile.lanes
    if span == weight.shape[1] and on_lines(weight):
        return weight[None]
    # A panel is read from start to end for every six rows. In `weight` itself its rows would be J numbers apart: other
    # pages for a wide weight, and vectors across two cache lines.
    panels = empty_rows((len(columns), len(weight), span), weight.dtype)
    for panel, column in zip(panels, columns, strict=True):
        panel[:] = weight[:, column : column + span]
    return panels


@inline(counted=False)
def _add_product(tile, rows, panels, i, t, sums):
    """Adds six rows of `rows`, from i, times panel t of a weight to six sums."""
    # Plainly: for k: sums[r] += rows[i + r, k] * weight[k, columns]. Six rows times up to four vectors are 24 sums in
    # registers: a loaded vector is used six times, a loaded number four times. Names, not a list: a list would be
    # memory.
    a, b, c, d, e, f = sums
    depth, span = panels.shape[1], panels.shape[2]
    for k in range(depth):
        factor = load(tile, panels, (t * depth + k) * span)
        a, b, c = fma(factor, rows[i, k], a), fma(factor, rows[i + 1, k], b), fma(factor, rows[i + 2, k], c)
        d, e, f = fma(factor, rows[i + 3, k], d), fma(factor, rows[i + 4, k], e), fma(factor, rows[i + 5, k], f)
    return a, b, c, d, e, f


@inline(counted=False)
def _add_row(tile, rows, panels, i, t, one):
    """The same for one row."""
    depth, span = panels.shape[1], panels.shape[2]
    for k in range(depth):
        one = fma(load(tile, panels, (t * depth + k) * span), rows[i, k], one)
    return one


@inline(counted=False)
def _copy(rows, first, count, block):
    """Copies `count` rows from `first`, widened where they are narrower."""
    begin, total = first * rows.shape[1], count * rows.shape[1]
    for place in range(0, total // 8 * 8, 8):
        store(EIGHT, block, place, load(EIGHT, rows, begin + place))
    for place in range(total // 8 * 8, total):
        store(ONE, block, place, load(ONE, rows, begin + place))


@inline(counted=False)
def _ask_for(rows, place, stop):
    """Asks for the cache lines of numbers [place, stop) of all rows, behind one another."""
    for line in range(place, stop, CACHE_LINE // rows.itemsize):
        prefetch(ONE, rows, line)


@inline(counted=False)
def _store_six(tile, array, place, width, sums, past):
    store_result(tile, array, place, sums[0], past)
    store_result(tile, array, place + width, sums[1], past)
    store_result(tile, array, place + 2 * width, sums[2], past)
    store_result(tile, array, place + 3 * width, sums[3], past)
    store_result(tile, array, place + 4 * width, sums[4], past)
    store_result(tile, array, place + 5 * width, sums[5], past)


@functools.cache
def _product_kernel(tile: Tile) -> Callable:
    @kernel
    def product_rows(start, stop, together, rows, panels, more, more_panels, columns, out, accumulate, past):
        """Writes out, for blocks [start, stop) of rows."""
        num, width = out.shape
        # A block of rows is copied to the second cache first: `out` may be `rows` itself, and bfloat16 is widened once.
        block = np.empty((together, rows.shape[1]), panels.dtype)
        more_block = np.empty((together, more.shape[1]), panels.dtype)
        made = np.empty((together if accumulate else 0, width), out.dtype)
        into = made if accumulate else out
        sixes = len(columns) * (together // TOGETHER)
        for first in range(start * together, min(stop * together, num), together):
            count = min(together, num - first)
            whole = count // TOGETHER * TOGETHER
            base = 0 if accumulate else first
            _copy(rows, first, count, block)
            _copy(more, first, count, more_block)
            # The next block is asked for meanwhile, a few lines for each six rows: copying does not wait for it.
            next_stop = min(first + 2 * together, stop * together, num)
            ask, last = (first + count) * rows.shape[1], next_stop * rows.shape[1]
            more_ask, more_last = (first + count) * more.shape[1], next_stop * more.shape[1]
            step, more_step = (last - ask) // sixes + 1, (more_last - more_ask) // sixes + 1
            for t in range(len(columns)):
                nothing = zeros(tile, panels)
                for m in range(0, whole, TOGETHER):
                    _ask_for(rows, ask, min(ask + step, last))
                    _ask_for(more, more_ask, min(more_ask + more_step, more_last))
                    ask, more_ask = ask + step, more_ask + more_step
                    sums = nothing, nothing, nothing, nothing, nothing, nothing
                    sums = _add_product(tile, block, panels, m, t, sums)
                    sums = _add_product(tile, more_block, more_panels, m, t, sums)
                    _store_six(tile, into, (base + m) * width + columns[t], width, sums, past)
                # Rows that are no six: one sum at a time, in the same order over k, so a row's bits do not depend on
                # its neighbours.
                for m in range(whole, count):
                    one = _add_row(tile, block, panels, m, t, nothing)
                    one = _add_row(tile, more_block, more_panels, m, t, one)
                    store(tile, into, (base + m) * width + columns[t], one)
            # One addition per number after the sum, not a sum that begins with `out`: the product's bits are those
            # without it. Tiles may overlap, so they are added when all are there.
            # Plain loops: numba's assignment of slices also compiles the text of its error message, 30 functions more.
            for i in range(count if accumulate else 0):
                for j in range(width):
                    out[first + i, j] = made[i, j] + out[first + i, j]

    return product_rows


@functools.cache
def _inner_kernel(tile: Tile, copied: bool) -> Callable:
    span = tile.lanes * tile.vectors

    @kernel
    def inner_rows(start, stop, bounds, rows, grads, columns, sums):
        """Adds the tiles' columns of sums[start:stop], each over its range of rows."""
        depth, width, count = rows.shape[1], grads.shape[1], len(columns)
        # Plainly: sums[k, j] += rows[i, k] * grads[i, j] over i. 256 gradients are copied tile by tile to level 2, then
        # six sums run over i in registers for six columns of `rows`. These are read where they lie, or copied if they
        # are bfloat16 or read for many tiles (AVX2, 256 x 256: 0.8 of the speed without).
        packed = np.empty((count * INNER_ROWS, span), sums.dtype)
        six = np.empty((INNER_ROWS if copied else 0, TOGETHER), sums.dtype)
        for part in range(start, stop):
            for first in range(bounds[part], bounds[part + 1], INNER_ROWS):
                num = min(INNER_ROWS, bounds[part + 1] - first)
                for i in range(num):
                    for t in range(count):
                        row = load(tile, grads, (first + i) * width + columns[t])
                        store(tile, packed, (t * INNER_ROWS + i) * span, row)
                for k in range(0, depth if depth >= TOGETHER else 0, TOGETHER):
                    # The last six are moved back until they end with the row; those that are done are not added again.
                    # One by one the last four of 256 columns would take as long as twenty others.
                    start_k = min(k, depth - TOGETHER)
                    for i in range(num if copied else 0):
                        store(SIX, six, i * TOGETHER, load(SIX, rows, (first + i) * depth + start_k))
                    for t in range(count):
                        place = (part * depth + start_k) * width + columns[t]
                        if copied:
                            _add_six(tile, six, 0, packed, t * INNER_ROWS, num, sums, place, k - start_k)
                        else:
                            begin = first * depth + start_k
                            _add_six(tile, rows, begin, packed, t * INNER_ROWS, num, sums, place, k - start_k)
                for k in range(0 if depth < TOGETHER else depth, depth):
                    for t in range(count):
                        one = zeros(tile, sums)
                        for i in range(num):
                            one = fma(load(tile, packed, (t * INNER_ROWS + i) * span), rows[first + i, k], one)
                        add_to(tile, sums, (part * depth + k) * width + columns[t], one)

    return inner_rows


@inline(counted=False)
def _add_six(tile, rows, begin, packed, first, num, sums, place, skip):
    """Adds to six rows of sums, but not to the first `skip`, the products of six columns with packed rows.

    Args: begin: position of the first row's six numbers in `rows`.
    """
    a = b = c = d = e = f = zeros(tile, sums)
    depth, span, width = rows.shape[1], packed.shape[1], sums.shape[2]
    for i in range(num):
        # Rows are a stride apart, which no processor foresees across pages: without it 602 columns take 1.37 times the
        # time.
        prefetch(EIGHT, rows, begin + SIX_AHEAD * depth)
        factor = load(tile, packed, (first + i) * span)
        a, b = fma(factor, at(rows, begin), a), fma(factor, at(rows, begin + 1), b)
        c, d = fma(factor, at(rows, begin + 2), c), fma(factor, at(rows, begin + 3), d)
        e, f = fma(factor, at(rows, begin + 4), e), fma(factor, at(rows, begin + 5), f)
        begin += depth
    if skip < 1:
        add_to(tile, sums, place, a)
    if skip < 2:
        add_to(tile, sums, place + width, b)
    if skip < 3:
        add_to(tile, sums, place + 2 * width, c)
    if skip < 4:
        add_to(tile, sums, place + 3 * width, d)
    if skip < 5:
        add_to(tile, sums, place + 4 * width, e)
    add_to(tile, sums, place + 5 * width, f)
