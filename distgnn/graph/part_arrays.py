"""Arrays of a part as tensors in memory: they come memory-mapped, or sparse."""

import mmap

import numpy as np
import torch

BLOCK_ROWS = 1 << 14


def as_tensor(array, dtype: torch.dtype) -> torch.Tensor | None:
    """A copy of an array in memory; None for None."""
    return None if array is None else torch.from_numpy(np.array(array)).to(dtype)


def dense_rows(feats, dtype: torch.dtype) -> torch.Tensor | None:
    """Features [O, D], mapped or scipy CSR, as one dense tensor; None for None. A second copy is never there."""
    if feats is None:
        return None
    rows = torch.empty(feats.shape, dtype=dtype)
    for first in range(0, len(rows), BLOCK_ROWS):
        block = feats[first : first + BLOCK_ROWS]
        rows[first : first + BLOCK_ROWS] = as_tensor(block.toarray() if hasattr(block, "toarray") else block, dtype)
    return rows


def leave_on_disk(array) -> None:
    """Let go of the pages of a memory-mapped array; they are read again where it is."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    if array is not None and hasattr(mmap, "MADV_DONTNEED"):
        array.madvise(mmap.MADV_DONTNEED)
