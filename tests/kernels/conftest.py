"""Make small inputs run on several threads, so that tests see the parallel path."""

import pytest

from distgnn.kernels.runtime import threads


@pytest.fixture(params=[1, 3], ids=["1thread", "3threads"])
def num_threads(request, monkeypatch):
    """One thread, then three with chunks of any size."""
    before = threads.get_num_threads()
    monkeypatch.setattr(threads, "SERIAL_WORK", 0)
    threads.set_num_threads(request.param)
    yield request.param
    threads.set_num_threads(before)
