"""Arrays on pages of their own: zeros, writable, aligned, gone with their last view."""

import gc
import mmap
import weakref

import numpy as np
import pytest

from distgnn.comm.page_memory import page_aligned_zeros


@pytest.mark.parametrize("shape", [(0, 5), (3, 5), (7,), (300_000, 16)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_zeros_that_begin_at_a_page(shape, dtype):
    rows = page_aligned_zeros(shape, dtype)
    assert (rows.shape, rows.dtype) == (shape, dtype)
    assert rows.flags.c_contiguous and rows.flags.writeable and not rows.any()
    assert rows.size == 0 or rows.ctypes.data % mmap.PAGESIZE == 0
    rows[...] = 1
    assert rows.sum() == rows.size


def test_pages_go_with_the_last_view():
    rows = page_aligned_zeros((4, 4), np.float32)
    pages = rows
    while isinstance(pages, np.ndarray):
        pages = pages.base
    gone, view = weakref.ref(pages.obj if isinstance(pages, memoryview) else pages), rows[1]
    del rows, pages
    gc.collect()
    assert gone() is not None and view.sum() == 0
    del view
    gc.collect()
    assert gone() is None
