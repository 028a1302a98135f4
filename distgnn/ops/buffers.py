"""Large results are made once and used again: a buffer is free as soon as nothing looks at it any more.

A fresh large tensor is faulted in page by page, which costs as much as a product that fills it, and on small pages
every gather from it misses the TLB. Blocks here are numpy's, which asks the kernel for huge pages. Nobody gives a
buffer back: a tensor on a piece of a block holds it, this pool refers to it weakly, and a piece that has ended is free.
A result takes the smallest gap that it fits in, so a free block of a wide layer holds narrower rows meanwhile.

With a folder (`--offload`) pieces wait in files there (file_memory.py). A new piece sends the oldest ones out until
those in memory are at most WORKING times the largest: a layer has its input and its sums at work. (In a pass without
gradients there are none in memory: they are made in their files.)
What was sent out last is needed first in the backward pass, and is read ahead from there.
"""

import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from distgnn.kernels import empty_rows, give_back_freed_memory
from distgnn.ops.file_memory import PAGE, Disk, FileMemory

SMALL = 1 << 20  # bytes; smaller results are left to malloc
LINE = 64  # bytes: a piece begins with a cache line, as a block does
WORKING = 2  # pieces of the largest size in memory, with a folder
AHEAD = 1  # of these are read ahead
SHARE = 2  # a whole block is broken for what fills at least half of it: it may soon be needed whole


@dataclass
class _Place:
    """Where a piece lies in its block, its number (the smallest is the oldest), who asked for it, and the piece itself.

    `waits`: in a file; `is_read`: or on its way back.
    """

    first: int
    end: int
    number: int
    asker: str
    piece: "weakref.ref[np.ndarray]"
    waits: bool = False
    is_read: bool = False

    @property
    def num_bytes(self) -> int:
        return self.end - self.first

    def is_used(self) -> bool:
        return self.piece() is not None


class _Block:
    """Memory, and the pieces of it that tensors look at, from its first byte on."""

    def __init__(self, num_bytes: int, disk: Disk | None):
        self.pages = None if disk is None else FileMemory(num_bytes, disk)
        if self.pages is not None:
            self.memory = self.pages.bytes
        else:
            self.memory = empty_rows((num_bytes,), np.uint8)
        self.places: list[_Place] = []
        self.left: list[tuple[int, int]] = []  # where free pieces have left pages behind; of `pages` only

    def forget_free_pieces(self) -> None:
        """Pieces that nothing looks at become gaps."""
        kept = []
        for place in self.places:
            if place.is_used():
                kept.append(place)
            elif self.pages is not None and place.waits:
                self.pages.give_up(place.first, place.end)
            elif self.pages is not None:
                self.left.append((place.first, place.end))
        self.places = kept

    def gaps(self) -> Iterator[tuple[int, int, int]]:
        """(bytes, first byte, number of pieces before it) of each gap."""
        ends, firsts = [0, *(one.end for one in self.places)], [*(one.first for one in self.places), self.num_bytes]
        for place, (end, first) in enumerate(zip(ends, firsts, strict=True)):
            yield first - end, end, place

    def take(self, num_bytes: int, first: int, place: int, number: int, asker: str) -> np.ndarray:
        """A piece from `first` on, in the gap behind `place` other pieces."""
        piece = self.memory[first : first + num_bytes]
        self.places.insert(place, _Place(first, first + num_bytes, number, asker, weakref.ref(piece)))
        for one, end in self.left[:]:
            self.left.remove((one, end))
            rest = (one, min(end, first)), (max(one, first + num_bytes), end)
            self.left.extend(piece for piece in rest if piece[0] < piece[1])
        return piece

    def left_bytes(self, first: int = 0, size: int | None = None) -> int:
        """Bytes of pages that free pieces have left behind, in a gap or in all."""
        end = self.num_bytes if size is None else first + size
        return sum(max(0, min(end, last) - max(first, one)) for one, last in self.left)

    def living(self) -> list[tuple[str, int, int]]:
        """(who asked, first address, last) of each piece that a tensor looks at. Changes nothing."""
        start = self.memory.__array_interface__["data"][0]
        return [(one.asker, start + one.first, start + one.end) for one in self.places if one.is_used()]

    @property
    def num_bytes(self) -> int:
        return self.memory.nbytes

    @property
    def used_bytes(self) -> int:
        """As far as is known since free pieces were forgotten."""
        return sum(place.num_bytes for place in self.places)


class Buffers:
    """The large results of one rank's model.

    Args: folder: where pieces wait in files; None: all stay in memory.
    Raises: RunError where the disk is full, or a file cannot be written.

    Attributes: asker: the ledger's name (`distgnn/graph/memory/ledger.py`) for what is asked for from now on; lean: of
        a pass without gradients, where nothing waits: any piece may break a free block, other free ones are given back,
        and with a folder all pieces are in files.

    Example:
        >>> buffers = dg.ops.Buffers()
        >>> buffers.empty(100, 8, torch.float32).shape
        torch.Size([100, 8])
    """

    def __init__(self, folder: str | None = None) -> None:
        self._blocks: list[_Block] = []
        self.disk: Disk | None = None if folder is None else Disk(folder)
        self._line = LINE if self.disk is None else PAGE
        self._count = 0  # of pieces
        self._lock = threading.Lock()  # the ledger looks from another thread
        self.asker, self.lean = "rows", False

    @property
    def working(self) -> int:
        """Pieces of the largest size that stay in memory, with a folder."""
        return 0 if self.lean else WORKING

    def empty(self, num_rows: int, width: int, dtype: torch.dtype) -> torch.Tensor:
        """A tensor [num_rows, width] with any content, on memory that was used before if there is a gap for it."""
        num_bytes = num_rows * width * dtype.itemsize
        if num_bytes < SMALL:
            return torch.empty(num_rows, width, dtype=dtype)
        with self._lock:
            piece = self._piece(-(-num_bytes // self._line) * self._line)
            if self.disk is not None:
                self._bound_memory()
        return torch.from_numpy(piece)[:num_bytes].view(dtype).view(num_rows, width)

    def empty_like(self, rows: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A tensor of the shape of `rows` [num_rows, width], and of its dtype or the one given."""
        return self.empty(rows.shape[0], rows.shape[1], dtype or rows.dtype)

    def _piece(self, num_bytes: int) -> np.ndarray:
        """The beginning of the smallest gap that is large enough, or a new block."""
        self._forget_free_pieces()
        self._make_room(num_bytes)
        self._count += 1
        gaps = [(gap, number) for number, block in enumerate(self._blocks) for gap in block.gaps()]
        fitting = []
        for (size, first, place), number in gaps:
            block = self._blocks[number]
            if num_bytes <= size and (self.lean or size < block.num_bytes or num_bytes * SHARE >= size):
                # Of gaps of one size, the one with most pages in memory comes first.
                fitting.append((size, -block.left_bytes(first, size), first, place, number))
        if fitting:
            _, _, first, place, number = min(fitting)
            piece = self._blocks[number].take(num_bytes, first, place, self._count, self.asker)
            if self.lean:
                self._drop_free_blocks_below(sys.maxsize)
            return piece
        self._drop_free_blocks_below(num_bytes)
        self._blocks.append(_Block(num_bytes, self.disk))
        return self._blocks[-1].take(num_bytes, 0, 0, self._count, self.asker)

    # --- pieces that wait ------------------------------------------------------------------------------------

    def _places(self) -> list[tuple[_Place, FileMemory]]:
        """All pieces as of when free ones were forgotten, the oldest first; none without a folder."""
        found = [(place, block.pages) for block in self._blocks if block.pages for place in block.places]
        return sorted(found, key=lambda one: one[0].number)

    def _make_room(self, num_bytes: int) -> None:
        """Before a piece is made: at most `working` times the largest piece stays in memory with it."""
        if self.disk is None:
            return
        self.leave()
        places = self._places()
        here = [one for one in places if not one[0].waits]
        sizes = [place.num_bytes for place, _ in here] + [num_bytes]
        while here and sum(sizes) > self.working * max(sizes):
            self._send_out(*here.pop(0))
            sizes.pop(0)
        self._leave_free(self.working * max(sizes) - sum(sizes) + num_bytes)  # the new piece can be made of it

    def _bound_memory(self) -> None:
        """After a piece was made, maybe of new memory; where none may stay there its place is in the file at once."""
        here = [one for one in self._places() if not one[0].waits]
        for place, pages in [] if self.working else here:
            pages.begin_there(place.first, place.end)
            place.waits = True
        sizes = [place.num_bytes for place, _ in here if not place.waits]
        self._leave_free(self.working * max(sizes, default=0) - sum(sizes))

    def _leave_free(self, room: int) -> None:
        """Of what free pieces have left behind, this number of bytes stays in memory."""
        for block in self._blocks:
            room -= block.left_bytes()
            if room < 0 and block.pages is not None:
                for first, end in block.left:
                    block.pages.leave(first, end)
                room += block.left_bytes()
                block.left.clear()

    def _send_out(self, place: _Place, pages: FileMemory) -> None:
        pages.move_out(place.first, place.end, place.is_used)
        place.waits = True
        for other, _ in self._places():
            other.is_read = False

    def send_out(self) -> None:
        """Let all pieces wait: nothing is computed on them soon."""
        with self._lock:
            self._forget_free_pieces()
            for place, pages in self._places():
                if not place.waits:
                    self._send_out(place, pages)

    def leave(self) -> None:
        """Pieces that wait leave the resident set; who reads on finds them in their files."""
        for place, pages in self._places():
            if place.waits:
                pages.leave(place.first, place.end)

    def read_ahead(self) -> None:
        """A backward pass comes to the pieces that wait: begin to read those that were made last."""
        self.leave()
        waiting = [one for one in self._places() if one[0].waits]
        room = AHEAD * max([place.num_bytes for place, _ in waiting], default=0)
        for place, pages in reversed(waiting):
            room -= place.num_bytes
            if room >= 0 and not place.is_read:
                place.is_read = True
                pages.read_ahead(place.first, place.end)

    def holds(self, address: int) -> bool:
        return any(
            0 <= address - block.memory.__array_interface__["data"][0] < block.num_bytes for block in self._blocks
        )

    def _forget_free_pieces(self) -> None:
        for block in self._blocks:
            block.forget_free_pieces()

    def give_back(self) -> None:
        """Give free blocks back to the system, before work of another kind that needs memory once."""
        with self._lock:
            self._forget_free_pieces()
            self._drop_free_blocks_below(max((block.num_bytes for block in self._blocks), default=0))

    def _drop_free_blocks_below(self, num_bytes: int) -> None:
        """Give free smaller blocks back to the system: the larger new one can stand for some of them later.

        The number of blocks of the largest size only grows, then of the next, so after some steps nothing is
        dropped any more.
        """
        kept = [block for block in self._blocks if block.num_bytes > num_bytes or block.used_bytes]
        if len(kept) < len(self._blocks):
            self._blocks = kept
            give_back_freed_memory()

    def living(self) -> list[tuple[str, int, int]]:
        """(who asked, first address, last) of each piece in use, and of whole blocks as "free rows" behind them."""
        with self._lock:
            arrays = [block.memory for block in self._blocks]
            whole = [(array.__array_interface__["data"][0], array.nbytes) for array in arrays]
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
