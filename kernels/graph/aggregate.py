"""Aggregation of neighbours: sums and means of source rows over the arcs of each target row.

R target rows, E arcs, N source rows, D feature width, H heads. CSR: row i's arcs are positions
indptr[i] … indptr[i + 1], the source of position e is indices[e].

sum    out[i] (+)= target_scale[i] * Σ_e edge_weight[e] * source_scale[indices[e]] * feats[indices[e]]
mean   the same, divided by the row's number of arcs; rows without arcs are 0
max    extremes.py

Blocks of source columns for dense graphs: all rows take from one block of rows while it is in the cache.

    BlockedCsr.indptr [B · R + 1]: block b's CSR is indptr[b R : (b + 1) R + 1], with absolute offsets
    out = Σ_b spmm(block b, feats), each block adding to out

Each block reads and writes `out` once more, so this pays only where rows have many arcs per block (Reddit: density
2e-3; never where it is 2e-5): `block_rows` says where it may, the tuner measures whether it does. Sums are rounded
in another order than without blocks.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from distgnn.kernels.graph.csr import BlockedCsr, csr_from_edges
from distgnn.kernels.graph.extremes import extreme
from distgnn.kernels.runtime.arrays import (
    ROWS,
    empty_rows,
    flat_rows,
    goes_past_caches,
    index_array,
    indptr_array,
    output,
    row_array,
    sums_dtype,
    vector,
)
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import edge_chunks, run
from distgnn.kernels.runtime.tiles import Tile, head_tiles, row_tiles
from distgnn.kernels.runtime.tuning import arcs_ahead, sum_vectors
from distgnn.kernels.simd.vector_math import store_result
from distgnn.kernels.simd.vectors import add, at, fma, fma_heads, load, prefetch, rolled, scale, zeros

BLOCK_BYTES = 1 << 24  # of source rows: half of a level 3 of 32 MiB
FEWEST_ARCS = 8  # of a row in a block, on average


def block_rows(num_rows: int, num_cols: int, num_arcs: int, row_bytes: int) -> int:
    """How many source rows of `row_bytes` make a block, or 0 where blocks cannot pay.

    They cannot where all sources are one block, or where a row has few arcs in each: then `out` costs more than is won.
    """
    # Fixed, not the size of the cache that is found: so a blocked sum has the same bits on every machine.
    rows = max(1, BLOCK_BYTES // max(1, row_bytes))
    blocks = -(-num_cols // rows)
    return rows if blocks > 1 and num_arcs >= FEWEST_ARCS * blocks * num_rows else 0


def block_csr(indptr: np.ndarray, indices: np.ndarray, num_cols: int, block_rows: int) -> BlockedCsr:
    """Cut the sources into blocks of `block_rows`.

    Args: indptr int [R + 1] starting at 0; indices int [E] in [0, num_cols).
    Returns: BlockedCsr; done once per graph, O(E).
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    rows = len(indptr) - 1
    blocks = max(1, -(-num_cols // max(1, block_rows)))
    # One sort by (block, row): key = block * R + row. The arcs of a row stay in the order of the CSR within a block.
    keys = np.repeat(np.arange(rows, dtype=np.int64), np.diff(indptr)) + indices // max(1, block_rows) * np.int64(rows)
    return BlockedCsr(*csr_from_edges(indices, keys, blocks * rows), blocks)


def spmm_blocked(
    graph: BlockedCsr,
    feats: np.ndarray,
    edge_weight: np.ndarray | None = None,
    out: np.ndarray | None = None,
    *,
    source_scale: np.ndarray | None = None,
    target_scale: np.ndarray | None = None,
    accumulate: bool = False,
    piece: slice | None = None,
) -> np.ndarray:
    """spmm (sum) of a BlockedCsr.

    Args: edge_weight: by CSR position before blocking; piece: slice of the target rows (default: all), of which `out`
        and target_scale then are. The rest as for `spmm`.
    """
    piece = piece or slice(0, graph.num_rows)
    if out is None:
        out = empty_rows((piece.stop - piece.start, *feats.shape[1:]), sums_dtype(feats))
    ids = None if edge_weight is None else graph.positions
    # Blocks one after the other, each over all rows: plainly, the loop over sources is outside and that over targets
    # inside, so that a block's 16 MiB of rows come from the cache for every target after the first.
    for b in range(graph.num_blocks):
        spmm(
            graph.block(b, piece.start, piece.stop), graph.indices, feats, "sum", edge_weight, out, edge_ids=ids,
            source_scale=source_scale, target_scale=target_scale, accumulate=accumulate or b > 0,
        )  # fmt: skip
    return out


REDUCTIONS = ("sum", "mean", "max", "min")


def spmm(
    indptr: np.ndarray,
    indices: np.ndarray,
    feats: np.ndarray,
    reduce: str = "sum",
    edge_weight: np.ndarray | None = None,
    out: np.ndarray | None = None,
    *,
    edge_ids: np.ndarray | None = None,
    source_scale: np.ndarray | None = None,
    target_scale: np.ndarray | None = None,
    accumulate: bool = False,
    keep_inf: bool = False,
    winners: bool = True,
    columns: tuple[int, int, int] | None = None,
) -> Any:  # an array; (array, winners) of a maximum
    """Aggregate the rows of `feats` over the arcs of a CSR.

    Args: indptr int [R + 1], may be a slice of a longer one (offsets stay absolute); indices int32 or int64 [E],
        in [0, N), not checked; feats float32, float64 or bfloat16 (as uint16) [N, D] or [N, H, F]; reduce sum, mean,
        max or min; edge_weight [E] or, one per head, [E, H], by `edge_ids` [E] if given (CSR position -> row of
        edge_weight), else by position; out like feats with R rows, bfloat16 or float32 if feats are bfloat16;
        source_scale [N]; target_scale [R]; accumulate adds to `out` (sum and mean);
        keep_inf leaves -inf (max) or +inf (min) in rows without arcs, for partial results that are merged later;
        winners=False: a maximum without its gradient is needed, which is quicker; columns: (first of feats, first of
        out, how many) of a sum without heads, into `out` of any width: its other columns stay.
    Returns: out (new: float32 for bfloat16 rows); for max and min (out, winner): winner is the CSR position (int32
        if it fits) or -1, or None without winners. Ties go to the first position.
    Raises: ValueError on shapes and dtypes.
    Notes: reads E · D elements. Each row is summed in CSR order by one thread: same bits for any number of threads.
    """
    indptr, indices, feats = indptr_array(indptr), index_array(indices), np.asarray(feats)
    tail = feats.shape[1:]
    feats = row_array(flat_rows(feats) if feats.ndim == 3 else feats, dtypes=ROWS)
    rows, dtype = len(indptr) - 1, sums_dtype(feats)
    edge_ids = np.empty(0, np.int64) if edge_ids is None else index_array(edge_ids, "edge_ids")
    weight = weights(edge_weight, dtype, tail)
    source_scale = vector(source_scale, len(feats), dtype, "source_scale")
    target_scale = vector(target_scale, rows, dtype, "target_scale")
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce must be one of {', '.join(REDUCTIONS)}, got {reduce!r}")
    if reduce in ("max", "min"):
        if accumulate or any(map(len, (weight, edge_ids, source_scale, target_scale))):
            raise ValueError(f"reduce={reduce!r} takes neither accumulate nor weights, edge ids and scales")
        return extreme(indptr, indices, feats, reduce, out, keep_inf, winners)
    if (accumulate or columns) and out is None:
        raise ValueError("accumulate=True, and columns, need out")
    tail = out.shape[1:] if columns and out is not None else tail
    out = output(out, (rows, *tail), feats.dtype if out is not None and out.dtype == feats.dtype else dtype)
    if reduce == "mean":  # one factor per row instead of a division per row and a scale: the kernel knows scales only
        target_scale = _divided(target_scale, np.diff(indptr), dtype)
    flat = out.reshape(rows, int(np.prod(tail)))
    first, into, count = columns or (0, 0, feats.shape[1])
    if columns and (min(first, into) < 0 or first + count > feats.shape[1] or into + count > flat.shape[1]):
        raise ValueError(f"columns {columns} are not all in rows {feats.shape} and out {flat.shape}")
    past = not accumulate and goes_past_caches(flat)
    place = first, into - first, count
    _sum(dtype, place, indptr, indices, feats, weight, edge_ids, source_scale, target_scale, flat, accumulate, past)
    return out


def _sum(
    dtype: DTypeLike,
    place: tuple[int, int, int],
    indptr: np.ndarray,
    indices: np.ndarray,
    feats: np.ndarray,
    weight: np.ndarray,
    edge_ids: np.ndarray,
    source_scale: np.ndarray,
    *rest: Any,
) -> None:
    """Run the kernel for each tile of columns."""
    first, shift, count = place
    bounds, arguments = edge_chunks(indptr, count), (indptr, indices, feats, weight, edge_ids, source_scale)
    # A row wider than the registers is summed in several passes over the arcs, each over some of its columns: the sums
    # of a pass never leave the registers. Chunks of rows go to threads; a chunk's rows are written by one thread.
    weighted, scaled = len(weight) > 0, len(source_scale) > 0
    for column, tile in _tiles(count, weight.shape[1], dtype, weighted or scaled):
        ahead = arcs_ahead(tile.width * feats.itemsize)
        run(_sum_kernel(tile, weighted, scaled), bounds, first + column, shift, ahead, *arguments, *rest)


def weights(edge_weight: np.ndarray | None, dtype: DTypeLike, tail: tuple) -> np.ndarray:
    """[E, H] of `dtype`; H = 1 for one weight per arc; [0, 1] for none."""
    if edge_weight is None:
        return np.empty((0, 1), dtype)
    weight = np.asarray(edge_weight, dtype)
    weight = row_array(weight[:, None] if weight.ndim == 1 else weight, "edge_weight")
    heads = weight.shape[1]
    fits = heads == 1 or (heads > 1 and (tail[0] == heads if len(tail) == 2 else tail[0] % heads == 0))
    if not fits:
        raise ValueError(f"edge_weight has {heads} heads, which do not fit rows of shape {tail}")
    return weight


def _tiles(width: int, heads: int, dtype: DTypeLike, factors: bool) -> list:
    if width == 0:
        return []
    if heads == 1:
        return row_tiles(width, dtype, sum_vectors(factors))
    return [(0, tile) for tile in head_tiles(heads, width // heads, dtype)]


def _divided(target_scale: np.ndarray, degree: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """target_scale / degree, 0 where the degree is 0."""
    inverse = np.divide(1.0, degree, out=np.zeros(len(degree)), where=degree > 0).astype(dtype)
    return inverse * target_scale if len(target_scale) else inverse


@inline(counted=False)
def _add_arc(tile, sums, e, coming, column, indices, feats, weight, edge_ids, source_scale, weighted, scaled):
    """sums + the row at arc e; asks for the row at arc `coming`."""
    # Plainly: sums += weight[edge] * source_scale[j] * feats[j], with j = indices[e]. `weighted` and `scaled` are
    # constants of the kernel, so the compiler keeps one of the four forms. The row of arc `coming` (`arcs_ahead`) is
    # on its way from memory while those before it are added. Without it RMAT took 1.5 (D = 100) to 2 times (D = 47) as
    # long (docs/internals/kernels.md).
    width = feats.shape[1]
    prefetch(tile, feats, at(indices, coming) * width + column)
    row = load(tile, feats, at(indices, e) * width + column)
    if weighted:
        if scaled:
            row = scale(row, at(source_scale, at(indices, e)))
        edge = at(edge_ids, e) if edge_ids.shape[0] else e
        return fma_heads(tile, row, weight, edge * weight.shape[1], sums)
    return fma(row, at(source_scale, at(indices, e)), sums) if scaled else add(row, sums)


@functools.cache
def _sum_kernel(tile: Tile, weighted: bool, scaled: bool) -> Callable:
    """The kernel for one tile of columns, starting at `column`, in `out` at `column + shift`.

    Args: weighted: by arc; scaled: by source.
    """

    @kernel(counted=False)
    def sum_rows(
        start, stop, column, shift, ahead, indptr, indices, feats, weight, edge_ids, source_scale, target_scale, out,
        accumulate, past_caches,
    ):  # fmt: skip
        """Writes the tile's columns of out[start:stop]."""
        width, one = out.shape[1], weight.dtype.type(1)
        last, end = at(indptr, stop) - 1, at(indptr, start)
        arcs = indices, feats, weight, edge_ids, source_scale, weighted, scaled
        # Plainly: for e in range(indptr[i], indptr[i + 1]): sums = sums + arc e. Two arcs a turn, an odd one first,
        # because one arc a turn spends much of its time on the loop itself (RMAT, D = 16: 8.7 ms; two a turn 6.1 ms),
        # and LLVM's own unrolling by eight guesses the end of short rows wrong (6.6 ms). The order of the sum stays
        # that of the CSR.
        for i in range(start, stop):
            sums = zeros(tile, feats)
            first, end = end, at(indptr, i + 1)
            e = first
            if (end - first) & 1:
                # min(…, last): the last rows of a chunk ask again for its last arc rather than for a row of nobody's.
                sums = _add_arc(tile, sums, e, min(e + ahead, last), column, *arcs)
                e += 1
            while e < end:
                rolled()
                sums = _add_arc(tile, sums, e, min(e + ahead, last), column, *arcs)
                sums = _add_arc(tile, sums, e + 1, min(e + 1 + ahead, last), column, *arcs)
                e += 2
            # Scaled once per row, after the sum, not once per arc.
            factor = at(target_scale, i) if target_scale.shape[0] else one
            sums = scale(sums, factor)
            if accumulate:
                sums = add(load(tile, out, i * width + column + shift), sums)
            # A row of a large result is not read before it is written, and leaves the caches to rows of sources.
            store_result(tile, out, i * width + column + shift, sums, past_caches)

    return sum_rows
