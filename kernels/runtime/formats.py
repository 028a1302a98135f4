"""Formats that kernels share with their references: rounding of codes, dropout masks, arcs in blocks.

Both take them from here, so neither imports the other.
"""

from typing import NamedTuple

import numpy as np

ROUNDING_TAG = 0x726F756E  # "roun": other draws than dropout's
BELOW = 1 - 2.0**-20  # keeps the largest code, plus u < 1, below LEVELS + 1 whatever the rounding of 1 / scale


def mask_parameters(p: float, dtype: np.dtype) -> tuple[np.uint32, np.floating]:
    """(16-bit threshold, scale of what is kept) of a dropout with probability p."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p must be in [0, 1], got {p}")
    # Up to 65536, which no 16-bit word reaches: p = 1 drops all. The threshold is therefore held in 32 bits.
    return np.uint32(round(p * 65536)), np.dtype(dtype).type(1 / (1 - p) if p < 1 else 0)


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
