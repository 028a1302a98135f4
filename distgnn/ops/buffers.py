"""Large results are made once and used again: a buffer is free as soon as nothing looks at it any more.

A fresh large tensor is faulted in page by page, which costs as much as a product that fills it, and on small pages
every gather from it misses the TLB. Blocks here are numpy's, which asks the kernel for huge pages. Nobody gives a
buffer back: a tensor on a block holds a reference to it, and a block that only this pool refers to is free.
"""

import sys

import numpy as np
import torch

from distgnn.kernels import empty_rows, give_back_freed_memory

SMALL = 1 << 20  # bytes; smaller results are left to malloc
SLACK = 1.4  # a block may be so many times larger than what it is used for


class Buffers:
    """The large results of one rank's model."""

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []
        self._unused = _references([np.empty(1)], 0)  # of a block that only a list refers to

    def empty(self, num_rows: int, width: int, dtype: torch.dtype) -> torch.Tensor:
        """A tensor [num_rows, width] with any content, on a block that was used before if one is free."""
        num_bytes = num_rows * width * dtype.itemsize
        if num_bytes < SMALL:
            return torch.empty(num_rows, width, dtype=dtype)
        block = self._free_block(num_bytes)
        if block is None:
            self._drop_free_blocks_below(num_bytes)
            block = empty_rows((num_bytes,), np.uint8)
            self._blocks.append(block)
        return torch.from_numpy(block)[:num_bytes].view(dtype).view(num_rows, width)

    def empty_like(self, rows: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A tensor of the shape of `rows` [num_rows, width], and of its dtype or the one given."""
        return self.empty(rows.shape[0], rows.shape[1], dtype or rows.dtype)

    def _free_block(self, num_bytes: int) -> np.ndarray | None:
        """The smallest free block that is not much too large."""
        fitting = [
            place
            for place in range(len(self._blocks))
            if num_bytes <= self._blocks[place].nbytes <= num_bytes * SLACK and self._is_free(place)
        ]
        return self._blocks[min(fitting, key=lambda place: self._blocks[place].nbytes)] if fitting else None

    def _drop_free_blocks_below(self, num_bytes: int) -> None:
        """Give free smaller blocks back to the system: the larger new one can stand for some of them later.

        The number of blocks of the largest size only grows, then that of the next, so after some steps nothing is
        dropped any more.
        """
        places = range(len(self._blocks))
        kept = [p for p in places if self._blocks[p].nbytes > num_bytes or not self._is_free(p)]
        if len(kept) < len(self._blocks):
            self._blocks = [self._blocks[place] for place in kept]
            give_back_freed_memory()

    def _is_free(self, place: int) -> bool:
        return _references(self._blocks, place) == self._unused

    @property
    def num_bytes(self) -> int:
        """Memory of all blocks, in use or free."""
        return sum(block.nbytes for block in self._blocks)


def _references(blocks: list[np.ndarray], place: int) -> int:
    return sys.getrefcount(blocks[place])
