"""CSR from edges, its transpose, and in blocks of sources: the work done once per graph.

All are one parallel counting sort. Each of B blocks of edges counts its edges per row; a scan over (row, block) gives
every block its own first place in every row; then each block places its edges in order. The sort is stable and its
result does not depend on B, which is the number of threads.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from distgnn.kernels.runtime.arrays import index_array, indptr_array
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import get_num_threads, run

BLOCK_EDGES = 1 << 16  # fewer edges than this per block are not worth another histogram


class BlockedCsr(NamedTuple):
    """Arcs grouped by (block of sources, target row); positions: CSR position of each arc before."""

    indptr: np.ndarray
    indices: np.ndarray
    positions: np.ndarray
    num_blocks: int

    @property
    def num_rows(self) -> int:
        return (len(self.indptr) - 1) // self.num_blocks

    def block(self, b: int, first: int = 0, stop: int | None = None) -> np.ndarray:
        """indptr of rows [first, stop) of block b; default: of all rows."""
        start = b * self.num_rows
        return self.indptr[start + first : start + (self.num_rows if stop is None else stop) + 1]


def csr_from_edges(src: np.ndarray, dst: np.ndarray, num_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group edges by target.

    Args: src, dst int [E], ids in [0, num_rows) for dst; num_rows: number of targets.
    Returns: indptr int64 [num_rows + 1], indices [E] in src's dtype, edge_ids int64 [E]: CSR position -> input edge.
    Raises: ValueError if lengths differ or a target is out of range.
    Notes: stable: inside a row edges keep their input order. Memory 8 · num_rows per thread.
    """
    src, dst = index_array(src, "src"), index_array(dst, "dst")
    if len(src) != len(dst):
        raise ValueError(f"src and dst must be equally long, got {len(src)} and {len(dst)}")
    # Checked here, once per graph: `_count` and `_place` write where the keys say.
    if len(dst) and (int(dst.min()) < 0 or int(dst.max()) >= num_rows):
        raise ValueError(f"dst must lie in [0, {num_rows}), got [{dst.min()}, {dst.max()}]")
    indptr, edge_ids = stable_order(dst, num_rows)
    indices = np.empty(len(src), src.dtype)
    run(_take, _edge_blocks(len(src)), src, edge_ids, indices)
    return indptr, indices, edge_ids


def transpose_csr(indptr: np.ndarray, indices: np.ndarray, num_cols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same arcs grouped by source.

    Args: indptr int [R + 1] starting at 0; indices int [E] in [0, num_cols).
    Returns: indptr_t int64 [num_cols + 1]; indices_t [E] in the dtype of indices (the old row of each arc);
        positions int64 [E]: transposed position -> original CSR position.
    Raises: ValueError if an index is out of range.
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=indices.dtype), np.diff(indptr))
    if len(rows) != len(indices):
        raise ValueError(f"indptr covers {len(rows)} arcs, indices has {len(indices)}")
    return csr_from_edges(rows, indices, num_cols)


def stable_order(
    keys: np.ndarray,
    num_keys: int,
    dtype: DTypeLike = np.int64,
    stream: np.ndarray | None = None,
    most_blocks: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Sort by key: the one counting sort of this package.

    Args: keys int [E] in [0, num_keys); dtype of the result; stream int [E], the edges in the order in which ties are
        kept (default: 0, 1, 2, …), as the second pass of a sort by two keys needs it; most_blocks: fewer blocks than
        threads, where 8 · num_keys bytes for each would be too much.
    Returns: indptr int64 [num_keys + 1], where each key begins; order [E], the edges sorted by key, stable.
    Notes: what `np.argsort(keys, kind="stable")` gives, in one pass over the edges for each thread's share.
    """
    # Plainly: order = np.argsort(keys, kind="stable"). Counting needs two passes over the keys instead of some log2(E),
    # and every block of edges is one thread's: none waits for another between the scans.
    blocks = _edge_blocks(len(keys), most_blocks)
    bounds = np.asarray(blocks, np.int64)
    places = np.zeros((len(blocks) - 1, num_keys), np.int64)
    indptr = np.empty(num_keys + 1, np.int64)
    order = np.empty(len(keys), dtype)
    each = range(len(blocks))
    # One block counts all edges: then their order makes no difference, and counting needs no look-up.
    run(_count, each, bounds, keys, stream if len(blocks) > 2 else None, places)
    _scan(places, indptr)
    run(_place, each, bounds, keys, stream, places, order)
    return indptr, order


def _edge_blocks(num_edges: int, most: int | None = None) -> list[int]:
    blocks = max(1, min(get_num_threads(), num_edges // BLOCK_EDGES, num_edges if most is None else most))
    return [num_edges * b // blocks for b in range(blocks + 1)]


@kernel(counted=False)
def _count(start, stop, bounds, keys, stream, places):
    """places[b, k] = edges of block b of the stream with key k."""
    for block in range(start, stop):
        for i in range(bounds[block], bounds[block + 1]):
            e = i if stream is None else stream[i]
            places[block, keys[e]] += 1


@kernel(counted=False)
def _scan(places, indptr):
    """Counts become each block's first place in each row."""
    total = np.int64(0)
    # Row by row and, within a row, block by block: so block 0's edges come before block 1's, and the sort
    # is stable whatever the number of blocks. Serial: it is a pass over num_rows × blocks numbers.
    for row in range(places.shape[1]):
        indptr[row] = total
        for block in range(places.shape[0]):
            count = places[block, row]
            places[block, row] = total
            total += count
    indptr[places.shape[1]] = total


@kernel(counted=False)
def _place(start, stop, bounds, keys, stream, places, order):
    """Writes the places of blocks [start, stop) in `order`."""
    for block in range(start, stop):
        for i in range(bounds[block], bounds[block + 1]):
            e = i if stream is None else stream[i]
            # The next free place of this block for this key; no other block has it, so nothing is atomic.
            place = places[block, keys[e]]
            order[place] = e
            places[block, keys[e]] = place + 1


@kernel(counted=False)
def _take(start, stop, values, order, out):
    """Writes out[start:stop]."""
    for i in range(start, stop):
        out[i] = values[order[i]]
