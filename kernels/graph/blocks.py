"""Blocks of source columns for dense graphs: all rows take from one block of rows while it is in the cache.

    BlockedCsr.indptr [B · R + 1]: block b's CSR is indptr[b R : (b + 1) R + 1], with absolute offsets
    out = Σ_b spmm(block b, feats), each block adding to out

Each block reads and writes `out` once more, so this pays only where rows have many arcs per block (Reddit: density
2e-3; never where it is 2e-5): `block_rows` says where it may, `tune_rows` measures whether it does. Sums are rounded
in another order than without blocks.
"""

from typing import NamedTuple

import numpy as np

from distgnn.kernels.graph.aggregate import spmm
from distgnn.kernels.graph.csr import csr_from_edges
from distgnn.kernels.runtime.arrays import empty_rows, index_array, indptr_array, sums_dtype

BLOCK_BYTES = 1 << 24  # of source rows: half of a level 3 of 32 MiB
FEWEST_ARCS = 8  # of a row in a block, on average


def block_rows(num_rows, num_cols, num_arcs, row_bytes):
    """How many source rows of so many bytes make a block, or 0 where blocks cannot pay.

    They cannot where all sources are one block, or where a row has few arcs in each: then `out` costs more than is won.
    """
    rows = max(1, BLOCK_BYTES // max(1, row_bytes))
    blocks = -(-num_cols // rows)
    return rows if blocks > 1 and num_arcs >= FEWEST_ARCS * blocks * num_rows else 0


class BlockedCsr(NamedTuple):
    """Arcs grouped by (block of sources, target row); positions: CSR position of each arc before."""

    indptr: np.ndarray
    indices: np.ndarray
    positions: np.ndarray
    num_blocks: int

    @property
    def num_rows(self):
        return (len(self.indptr) - 1) // self.num_blocks

    def block(self, b, first=0, stop=None):
        """indptr of rows [first, stop) of block b; default: of all rows."""
        start = b * self.num_rows
        return self.indptr[start + first : start + (self.num_rows if stop is None else stop) + 1]


def block_csr(indptr, indices, num_cols, block_rows):
    """Cut the sources into blocks of `block_rows`.

    Args: indptr int [R + 1] starting at 0; indices int [E] in [0, num_cols).
    Returns: BlockedCsr; done once per graph, O(E).
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    rows = len(indptr) - 1
    blocks = max(1, -(-num_cols // max(1, block_rows)))
    keys = np.repeat(np.arange(rows, dtype=np.int64), np.diff(indptr)) + indices // max(1, block_rows) * np.int64(rows)
    return BlockedCsr(*csr_from_edges(indices, keys, blocks * rows), blocks)


def spmm_blocked(
    graph, feats, edge_weight=None, out=None, *, source_scale=None, target_scale=None, accumulate=False, piece=None
):
    """spmm (sum) of a BlockedCsr.

    Args: edge_weight: by CSR position before blocking; piece: slice of the target rows (default: all), of which `out`
        and target_scale then are. The rest as for `spmm`.
    """
    piece = piece or slice(0, graph.num_rows)
    if out is None:
        out = empty_rows((piece.stop - piece.start, *feats.shape[1:]), sums_dtype(feats))
    ids = None if edge_weight is None else graph.positions
    for b in range(graph.num_blocks):
        spmm(
            graph.block(b, piece.start, piece.stop), graph.indices, feats, "sum", edge_weight, out, edge_ids=ids,
            source_scale=source_scale, target_scale=target_scale, accumulate=accumulate or b > 0,
        )  # fmt: skip
    return out
