"""What is measured for one graph on one machine, and kept by that graph: `Tuning`.

Blocks of sources change the rounding of sums, our products the rounding of products; nothing else changes. How
far ahead a row is asked for is not measured: it follows from the processor (`tiles.arcs_ahead`).
"""

import math
import time
from typing import NamedTuple

import numpy as np

from distgnn.kernels.graph.aggregate import spmm
from distgnn.kernels.graph.blocks import block_csr, block_rows, spmm_blocked
from distgnn.kernels.runtime.arrays import empty_rows, index_array, indptr_array

BLOCKED_ARCS = 1 << 22  # blocks show what they are worth when each source is met several times
SCRATCH_BYTES = 1 << 28  # of source rows: far more than any cache holds
ROW_BYTES = (64, 256, 512, 1024)  # widths 16 to 256 in float32
BLOCKS_WORTH = 0.85  # blocks take memory for a second copy of the indices


class Tuning(NamedTuple):
    """How sums and products over one graph run: a value that the graph holds; the default is what was not measured.

    blocked: the ROW_BYTES at which sums by blocks of sources (blocks.py) were quicker; own_products: float32
    matrices are multiplied by `product`, not by torch (whoever has both measures it).
    """

    blocked: frozenset[int] = frozenset()
    own_products: bool = True

    def goes_by_blocks(self, row_bytes: int) -> bool:
        """Whether sums of rows of about `row_bytes` go by blocks: as at the nearest measured size."""
        return min(ROW_BYTES, key=lambda size: abs(math.log(size / max(1, row_bytes)))) in self.blocked


def tune_rows(
    indptr: np.ndarray, indices: np.ndarray, num_cols: int, *, row_bytes: tuple[int, ...] = ROW_BYTES
) -> frozenset[int]:
    """The row sizes at which sums over this graph are clearly quicker by blocks of sources: `Tuning.blocked`.

    Args: indptr, indices: as for spmm; num_cols: number of sources; row_bytes: of float32 rows, multiples of 4.
    Notes: rows of ones stand in for features. Nothing is timed where blocks cannot pay (`block_rows`), and sizes are
        left out for which all sources together need more than 256 MiB.
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    return frozenset(size for size in row_bytes if _blocks_pay(indptr, indices, num_cols, size))


def _blocks_pay(indptr: np.ndarray, indices: np.ndarray, num_cols: int, row_bytes: int) -> bool:
    # On most graphs nothing is timed: blocks can pay only where a row has many arcs in each.
    rows = block_rows(len(indptr) - 1, num_cols, int(indptr[-1] - indptr[0]), row_bytes)
    if not rows or num_cols * row_bytes > SCRATCH_BYTES:
        return False
    feats = np.ones((num_cols, row_bytes // 4), np.float32)
    sample = _sample(indptr, BLOCKED_ARCS)
    near, sample = indices[int(sample[0]) : int(sample[-1])], sample - sample[0]
    blocked = block_csr(sample, near, num_cols, rows)
    out = empty_rows((len(sample) - 1, feats.shape[1]), feats.dtype)
    spent = {"plain": math.inf, "blocked": math.inf}
    # In turn, and the least of three: both see the same other work on the machine, and the first call compiles.
    for _ in range(3):
        for name, call in (
            ("plain", lambda: spmm(sample, near, feats, out=out)),
            ("blocked", lambda: spmm_blocked(blocked, feats, out=out)),
        ):
            start = time.perf_counter()
            call()
            spent[name] = min(spent[name], time.perf_counter() - start)
    return spent["blocked"] < BLOCKS_WORTH * spent["plain"]


def _sample(indptr: np.ndarray, num_arcs: int) -> np.ndarray:
    """The middle rows with about num_arcs arcs, as a slice of indptr."""
    middle = (int(indptr[0]) + int(indptr[-1])) // 2
    first, last = np.searchsorted(indptr, [middle - num_arcs // 2, middle + num_arcs // 2])
    first = min(int(first), len(indptr) - 1)
    return indptr[first : max(int(last), first) + 1]
