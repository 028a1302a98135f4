"""Blocks of source columns for dense graphs: all rows take from one block of rows while it is in the cache.

    BlockedCsr.indptr [B · R + 1]: block b's CSR is indptr[b R : (b + 1) R + 1], with absolute offsets
    out = Σ_b spmm(block b, feats), each block adding to out

Each block reads and writes `out` once more, so this pays only where rows have many arcs per block (Reddit: density
2e-3; never where it is 2e-5). Sums are rounded in another order than without blocks.
"""

from typing import NamedTuple

import numpy as np

from .aggregate import spmm
from .arrays import empty_rows, index_array, indptr_array, sums_dtype
from .structure import csr_from_edges


class BlockedCsr(NamedTuple):
    """Arcs grouped by (block of sources, target row); positions: CSR position of each arc before."""

    indptr: np.ndarray
    indices: np.ndarray
    positions: np.ndarray
    num_blocks: int

    def block(self, b):
        rows = (len(self.indptr) - 1) // self.num_blocks
        return self.indptr[b * rows : (b + 1) * rows + 1]


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


def spmm_blocked(graph, feats, edge_weight=None, out=None, *, source_scale=None, target_scale=None, accumulate=False):
    """spmm (sum) of a BlockedCsr; edge_weight is by CSR position before blocking."""
    rows = (len(graph.indptr) - 1) // graph.num_blocks
    if out is None:
        out = empty_rows((rows, *feats.shape[1:]), sums_dtype(feats))
    ids = None if edge_weight is None else graph.positions
    for b in range(graph.num_blocks):
        spmm(
            graph.block(b), graph.indices, feats, "sum", edge_weight, out, edge_ids=ids, source_scale=source_scale,
            target_scale=target_scale, accumulate=accumulate or b > 0,
        )  # fmt: skip
    return out
