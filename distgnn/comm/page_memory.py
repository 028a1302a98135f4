"""Arrays that live as long as the graph (messages, held rows), in memory pages of their own.

malloc is told to keep what is freed (`kernels.keep_freed_memory`), because the results of layers come and go in the
same sizes. A long-lived buffer of another size, made between two of them, would take a piece of a freed block for
good; the next result of that size would then need new pages from the kernel.
"""

import mmap

import numpy as np

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
