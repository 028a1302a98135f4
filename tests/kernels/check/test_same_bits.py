"""Every kernel gives the same bits on any number of threads."""

import numpy as np
import pytest

from distgnn import kernels
from distgnn.kernels.check import cases
from distgnn.kernels.check.cases_of import large_graph
from distgnn.kernels.runtime import threads

EXAMPLES = list(cases.examples())


@pytest.fixture(autouse=True)
def chunks_of_any_size(monkeypatch):
    before = threads.get_num_threads()
    monkeypatch.setattr(threads, "THREAD_WORK", 1)
    yield
    threads.set_num_threads(before)


def on_threads(count, call):
    threads.set_num_threads(count)
    results = call()
    results = results if isinstance(results, tuple | list) else (results,)
    return [np.asarray(result).tobytes() for result in results if result is not None]


@pytest.mark.parametrize("name", cases.CASES)
def test_every_kernel(name):
    function = getattr(kernels, name)
    mine = [example for example in EXAMPLES if example.kernel == name]

    def call():
        return [got for one in mine for got, _ in one.pairs(function, large_graph())]

    assert on_threads(1, call) == on_threads(3, call) == on_threads(16, call)


def test_sums_over_all_rows():
    """Gradients of biases and norms and weighted sums of rows: many rows go into one number."""
    generator = np.random.default_rng(0)
    feats, others = generator.standard_normal((2, 3000, 12), np.float32)
    ids, out = np.arange(3000), np.maximum(feats, 0)
    stats = generator.random((3000, 2), np.float32)
    norm = feats[0], feats[1]
    options = {"p": 0.3, "row_ids": ids}
    calls = (
        lambda: kernels.activate_backward(others, out, **options),
        lambda: kernels.activate_backward(others, out, feats, None, norm, stats, **options),
    )
    for call in calls:
        assert on_threads(1, call) == on_threads(2, call) == on_threads(5, call)
