"""Blocks of source columns for dense graphs: all rows take from one block of rows while it is in the cache.

    BlockedCsr.indptr [B · R + 1]: block b's CSR is indptr[b R : (b + 1) R + 1], with absolute offsets
    out = Σ_b spmm(block b, feats), each block adding to out

Each block reads and writes `out` once more, so this pays only where rows have many arcs per block (Reddit: density
2e-3; never where it is 2e-5): `block_rows` says where it may, the tuner measures whether it does. Sums are rounded
in another order than without blocks.
"""

import numpy as np

from distgnn.kernels.graph.aggregate import spmm
from distgnn.kernels.graph.csr import csr_from_edges
from distgnn.kernels.runtime.arrays import empty_rows, index_array, indptr_array, sums_dtype
from distgnn.kernels.runtime.formats import BlockedCsr

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
