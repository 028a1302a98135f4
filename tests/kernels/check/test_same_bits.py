"""Every kernel gives the same bits on any number of threads."""

from functools import partial

import numpy as np
import pytest

from distgnn.kernels.check import cases, self_check
from distgnn.kernels.runtime import threads

from ..runtime.test_checked import GIVEN, kernels


@pytest.fixture(autouse=True)
def chunks_of_any_size(monkeypatch):
    before = threads.get_num_threads()
    monkeypatch.setattr(threads, "SERIAL_WORK", 0)
    yield
    threads.set_num_threads(before)


def on_threads(count, call):
    threads.set_num_threads(count)
    results = call()
    results = results if isinstance(results, tuple | list) else (results,)
    return [np.asarray(result).tobytes() for result in results if result is not None]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_on_the_graph_of_the_self_check(dtype):
    indptr, indices, _ = self_check.reference.csr_from_edges(*self_check._edges(), 40)
    for name, call in self_check._calls(np.dtype(dtype), indptr, indices):
        alone, several, many = (on_threads(count, partial(call, self_check._Kernels())) for count in (1, 3, 16))
        assert alone == several == many, name


@pytest.mark.parametrize(("name", "given"), GIVEN, ids=[f"{name}-{i}" for i, (name, _) in enumerate(GIVEN)])
def test_on_the_cases_of_the_first_use(name, given):
    function = getattr(kernels, name).__wrapped__

    def call():
        return [got for got, _ in cases.CASES[name](function, given)]

    assert on_threads(1, call) == on_threads(3, call) == on_threads(16, call)


def test_sums_over_all_rows():
    """Gradients of biases and norms and weighted sums of rows: many rows go into one number."""
    generator = np.random.default_rng(0)
    feats, others = generator.standard_normal((2, 3000, 12), np.float32)
    rows, factors = generator.standard_normal((1, 12), np.float32), generator.standard_normal((1, 3000, 3), np.float32)
    ids, out = np.arange(3000), np.maximum(feats, 0)
    stats = generator.random((3000, 2), np.float32)
    norm = feats[0], feats[1]
    options = {"p": 0.3, "row_ids": ids}
    calls = (
        lambda: kernels.activate_backward(others, out, **options),
        lambda: kernels.activate_backward(others, out, feats, None, norm, stats, **options),
        lambda: kernels.head_outer(feats.copy(), rows, factors, others),
    )
    for call in calls:
        assert on_threads(1, call) == on_threads(2, call) == on_threads(5, call)
