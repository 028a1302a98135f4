"""Memory of messages and held rows, in pages of their own.

In them pages are large, and can be given back one by one (`leave_pages`).
"""

import mmap

import numpy as np
from mpi4py import MPI

HUGE_FROM = 4 << 20  # bytes; from here on the kernel is asked for huge pages, as numpy does for its own arrays


def page_aligned_zeros(shape: tuple[int, ...], dtype: np.typing.DTypeLike) -> np.ndarray:
    """Zeros in an anonymous mapping, outside of malloc's heap; unmapped when the array is freed."""
    num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if num_bytes == 0:
        return np.zeros(shape, dtype)
    pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if num_bytes >= HUGE_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8, num_bytes).view(dtype).reshape(shape)


def leave_pages(rows: np.ndarray, piece: slice) -> None:
    """Give the pages of some rows of a `page_aligned_zeros` back to the system: what is wholly in them becomes 0."""
    mapped: object = rows
    while isinstance(mapped, np.ndarray):
        mapped = mapped.base
    row_bytes = rows.nbytes // max(len(rows), 1)
    first, end = -(-piece.start * row_bytes // mmap.PAGESIZE), piece.stop * row_bytes // mmap.PAGESIZE
    if isinstance(mapped, memoryview) and isinstance(mapped.obj, mmap.mmap) and first < end:
        mapped.obj.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (end - first) * mmap.PAGESIZE)


class MessageMemory:
    """Rows of the exact messages of all exchanges of a graph: one array per role, as large as its largest use.

    Both directions and all widths use it in turn. An exchange waits for `sending` before it asks for rows that MPI
    may still read.

    Attributes: sending: by verb, requests of messages that leave.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self.sending: dict[str, list[MPI.Request]] = {"broadcast": [], "reduce": []}

    def rows(self, role: str, num_rows: int, like: np.ndarray) -> np.ndarray:
        """Rows [num_rows, D] with any content, with the width and dtype of `like` [*, D]."""
        num_bytes = num_rows * like.shape[1] * like.itemsize
        if num_bytes > len(self._arrays.get(role, ())):
            self.give_back(role)  # first, so that never both are there
            self._arrays[role] = page_aligned_zeros((num_bytes,), np.uint8)
        if num_bytes == 0:
            return np.empty((num_rows, like.shape[1]), like.dtype)
        return self._arrays[role][:num_bytes].view(like.dtype).reshape(num_rows, like.shape[1])

    def give_back(self, *roles: str) -> None:
        for role in roles:
            self._arrays.pop(role, None)

    def blocks(self) -> list[tuple[str, object]]:
        """What it holds, by name, for the ledger."""
        names = {"sources": "halo rows", "targets": "halo rows"}
        return [(names.get(role, "messages"), array) for role, array in list(self._arrays.items())]

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())
