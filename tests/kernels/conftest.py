"""Make small inputs run on several threads, so that tests see the parallel path."""

import pytest

from distgnn.kernels.runtime import threads


@pytest.fixture
def num_threads(monkeypatch):
    """Three, with chunks of any size. That one thread gives the same bits, of every kernel: check/test_same_bits.py."""
    before = threads.get_num_threads()
    monkeypatch.setattr(threads, "THREAD_WORK", 1)
    threads.set_num_threads(3)
    yield 3
    threads.set_num_threads(before)
