"""Large results are made once and used again: a buffer is free as soon as nothing looks at it any more.

A fresh large tensor is faulted in page by page, which costs as much as a product that fills it, and on small pages
every gather from it misses the TLB. Blocks here are numpy's, which asks the kernel for huge pages. Nobody gives a
buffer back: a tensor on a piece of a block holds a reference to it, and a piece that only this pool refers to is free.
A result takes the smallest gap that it fits in, so a free block of a wide layer holds narrower rows meanwhile.
"""

import sys
import threading
from collections.abc import Iterator

import numpy as np
import torch

from distgnn.kernels import empty_rows, give_back_freed_memory

SMALL = 1 << 20  # bytes; smaller results are left to malloc
LINE = 64  # bytes: a piece begins with a cache line, as a block does
SHARE = 2  # a whole block is broken for what fills at least half of it: it may soon be needed whole


class _Block:
    """Memory, and the pieces of it that tensors look at, from its first byte on."""

    def __init__(self, num_bytes: int):
        self.memory = empty_rows((num_bytes,), np.uint8)
        self._pieces: list[np.ndarray] = []
        self._bounds: list[tuple[int, int]] = []
        self._askers: list[str] = []
        self._unused = _references([np.empty(1)], 0)  # of a piece that only a list refers to

    def forget_free_pieces(self) -> None:
        """Pieces that nothing looks at become gaps."""
        used = [place for place in range(len(self._pieces)) if _references(self._pieces, place) != self._unused]
        self._pieces = [self._pieces[place] for place in used]
        self._bounds = [self._bounds[place] for place in used]
        self._askers = [self._askers[place] for place in used]

    def gaps(self) -> Iterator[tuple[int, int, int]]:
        """(bytes, first byte, number of pieces before it) of each gap."""
        ends, firsts = [0, *(end for _, end in self._bounds)], [*(first for first, _ in self._bounds), self.num_bytes]
        for place, (end, first) in enumerate(zip(ends, firsts, strict=True)):
            yield first - end, end, place

    def take(self, num_bytes: int, first: int, place: int, asker: str) -> np.ndarray:
        """A piece from `first` on, in the gap behind `place` other pieces."""
        piece = self.memory[first : first + num_bytes]
        self._pieces.insert(place, piece)
        self._bounds.insert(place, (first, first + num_bytes))
        self._askers.insert(place, asker)
        return piece

    def living(self) -> list[tuple[str, int, int]]:
        """(who asked, first address, last) of each piece that a tensor looks at. Changes nothing."""
        start, found = self.memory.__array_interface__["data"][0], []
        for place, ((first, last), asker) in enumerate(zip(self._bounds, self._askers, strict=True)):
            if _references(self._pieces, place) != self._unused:
                found.append((asker, start + first, start + last))
        return found

    @property
    def num_bytes(self) -> int:
        return self.memory.nbytes

    @property
    def used_bytes(self) -> int:
        """As far as is known since free pieces were forgotten."""
        return sum(end - first for first, end in self._bounds)


class Buffers:
    """The large results of one rank's model.

    Attributes: asker: the ledger's name (`distgnn/graph/memory/ledger.py`) for what is asked for from now on.

    Example:
        >>> buffers = dg.ops.Buffers()
        >>> buffers.empty(100, 8, torch.float32).shape
        torch.Size([100, 8])
    """

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._lock = threading.Lock()  # the ledger looks from another thread
        self.asker = "rows"

    def empty(self, num_rows: int, width: int, dtype: torch.dtype) -> torch.Tensor:
        """A tensor [num_rows, width] with any content, on memory that was used before if there is a gap for it."""
        num_bytes = num_rows * width * dtype.itemsize
        if num_bytes < SMALL:
            return torch.empty(num_rows, width, dtype=dtype)
        with self._lock:
            piece = self._piece(-(-num_bytes // LINE) * LINE)
        return torch.from_numpy(piece)[:num_bytes].view(dtype).view(num_rows, width)

    def empty_like(self, rows: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A tensor of the shape of `rows` [num_rows, width], and of its dtype or the one given."""
        return self.empty(rows.shape[0], rows.shape[1], dtype or rows.dtype)

    def _piece(self, num_bytes: int) -> np.ndarray:
        """The beginning of the smallest gap that is large enough, or a new block."""
        self._forget_free_pieces()
        gaps = [(gap, number) for number, block in enumerate(self._blocks) for gap in block.gaps()]
        fitting = [(gap, n) for gap, n in gaps if num_bytes <= gap[0] and self._may_break(n, gap[0], num_bytes)]
        if fitting:
            (_, first, place), number = min(fitting)
            return self._blocks[number].take(num_bytes, first, place, self.asker)
        self._drop_free_blocks_below(num_bytes)
        self._blocks.append(_Block(num_bytes))
        return self._blocks[-1].take(num_bytes, 0, 0, self.asker)

    def _may_break(self, number: int, gap: int, num_bytes: int) -> bool:
        return gap < self._blocks[number].num_bytes or num_bytes * SHARE >= gap

    def _forget_free_pieces(self) -> None:
        for block in self._blocks:
            block.forget_free_pieces()

    def _drop_free_blocks_below(self, num_bytes: int) -> None:
        """Give free smaller blocks back to the system: the larger new one can stand for some of them later.

        The number of blocks of the largest size only grows, then that of the next, so after some steps nothing is
        dropped any more.
        """
        kept = [block for block in self._blocks if block.num_bytes > num_bytes or block.used_bytes]
        if len(kept) < len(self._blocks):
            self._blocks = kept
            give_back_freed_memory()

    def living(self) -> list[tuple[str, int, int]]:
        """(who asked, first address, last) of each piece in use, and of whole blocks as "free rows" behind them."""
        with self._lock:
            whole = [(block.memory.__array_interface__["data"][0], block.num_bytes) for block in self._blocks]
            pieces = [piece for block in self._blocks for piece in block.living()]
        return pieces + [("free rows", start, start + size) for start, size in whole]

    def idle_bytes(self) -> int:
        """Memory that no tensor looks at. Changes nothing."""
        with self._lock:
            used = sum(last - first for block in self._blocks for _, first, last in block.living())
            return self.num_bytes - used

    @property
    def num_bytes(self) -> int:
        """Memory of all blocks, in use or free."""
        return sum(block.num_bytes for block in self._blocks)

    @property
    def used_bytes(self) -> int:
        """Memory that tensors look at."""
        self._forget_free_pieces()
        return sum(block.used_bytes for block in self._blocks)


def _references(pieces: list[np.ndarray], place: int) -> int:
    return sys.getrefcount(pieces[place])
