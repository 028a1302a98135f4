"""Spans of memory: the first name of one counts, and which of its pages are resident."""

import numpy as np

from distgnn.comm.transport import page_aligned_zeros
from distgnn.graph.memory.spans import PAGE, Span, apart, resident_in


def test_the_first_name_counts():
    spans = [("a", Span(10, 20)), ("b", Span(0, 15)), ("c", Span(12, 30)), ("d", Span(13, 18))]
    bytes_of = dict.fromkeys("abcd", 0)
    for name, span in apart(spans):
        bytes_of[name] += span.last - span.first
    assert bytes_of == {"a": 10, "b": 10, "c": 10, "d": 0}


def test_what_was_never_touched_is_not_resident(tmp_path):
    size = 64 * PAGE
    memory = page_aligned_zeros((size,), np.uint8)
    first = memory.__array_interface__["data"][0]
    assert resident_in(Span(first, first + size)) == (0, 0)
    memory[: 16 * PAGE] = 1
    assert resident_in(Span(first, first + size)) == (16 * PAGE, 0)
    np.save(tmp_path / "file.npy", np.zeros(size, np.uint8))
    mapped = np.load(tmp_path / "file.npy", mmap_mode="r")
    assert mapped.sum() == 0
    first = mapped.__array_interface__["data"][0]
    assert sum(resident_in(Span(first, first + size))[1:]) > size // 2
