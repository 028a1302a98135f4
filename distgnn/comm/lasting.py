"""Arrays that stay as long as the graph: messages and held rows, on pages of their own.

malloc is told to keep what is freed (`kernels.keep_freed_memory`), because the results of layers come and go in the
same sizes. A lasting buffer of odd size that is made between them would take a piece out of one of their places for
good, and the next result would need new memory.
"""

import mmap

import numpy as np

HUGE_FROM = 4 << 20  # bytes; from here on the kernel is asked for huge pages, as numpy does for its own arrays


def lasting_rows(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros, beginning at a page, outside of malloc's heap."""
    num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if num_bytes == 0:
        return np.zeros(shape, dtype)
    pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if num_bytes >= HUGE_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8, num_bytes).view(dtype).reshape(shape)
