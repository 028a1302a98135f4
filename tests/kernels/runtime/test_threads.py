"""The pool: any thread may call, errors come back, small work stays where it is."""

import threading
import weakref

import numpy as np
import pytest

from distgnn import kernels
from distgnn.kernels.runtime import threads

from ..graphs import awkward, rows_of


def test_calls_from_many_threads_at_once(num_threads):
    indptr, indices, sources = awkward("random")
    feats = rows_of(sources, 37)
    expected, results = kernels.spmm(indptr, indices, feats), [None] * 8

    def work(place):
        for _ in range(20):
            results[place] = kernels.spmm(indptr, indices, feats)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_an_error_in_a_worker_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(threads._pool(), "num_threads", 2)
    caller, failed = threading.current_thread(), threading.Event()

    def fail_elsewhere(start, stop):
        if threading.current_thread() is caller:
            assert failed.wait(60)  # a worker has taken a chunk
        else:
            failed.set()
            raise ArithmeticError(start)

    with pytest.raises(ArithmeticError):
        threads.run(fail_elsewhere, [0, 1, 2, 3])


@pytest.mark.parametrize("end", ["worked", "failed", "cancelled"])
def test_the_caller_lets_go_of_a_task_last(end):
    """A worker that frees a tensor while Python ends aborts the process, so its request keeps nothing alive."""

    class Task:
        def __call__(self):
            if end == "failed":
                raise ArithmeticError

    task = Task()
    call, held = threads._Call(task), weakref.ref(task)
    if end != "cancelled":
        worker = threading.Thread(target=call.work)
        worker.start()
        worker.join()
    if end == "failed":
        with pytest.raises(ArithmeticError):
            call.join()
    else:
        call.join()
    del task
    assert held() is None


def test_every_chunk_runs_once(num_threads):
    seen = np.zeros(1000, int)

    def touch(start, stop):
        seen[start:stop] += 1

    threads.run(touch, threads.even_chunks(1000, 1))
    assert (seen == 1).all()


@pytest.mark.parametrize("first", [0, 10**5])  # of the whole, and of a slice of rows
def test_edge_chunks_cover_rows_and_balance_edges(monkeypatch, first):
    monkeypatch.setattr(threads, "THREAD_WORK", 1)
    monkeypatch.setattr(threads._pool(), "num_threads", 4)
    indptr = np.concatenate([[0], np.cumsum(np.random.default_rng(0).integers(0, 9, 5000))]) + first
    bounds = threads.edge_chunks(indptr, 1)
    assert bounds[0] == 0 and bounds[-1] == 5000 and bounds == sorted(bounds)
    share = np.diff(indptr[bounds]) / (indptr[-1] - first) * (len(bounds) - 1)
    assert abs(share - 1).max() < 0.1


@pytest.mark.parametrize(("share", "pieces"), [(0.5, 1), (1.9, 1), (2, 2), (7.9, 7), (8, 128), (99, 128)])
def test_no_more_threads_are_woken_than_have_work(monkeypatch, share, pieces):
    monkeypatch.setattr(threads._pool(), "num_threads", 8)
    assert len(threads.even_chunks(int(share * threads.THREAD_WORK / 16), 16)) == pieces + 1


def test_hubs_are_handed_out_first(monkeypatch):
    monkeypatch.setattr(threads, "THREAD_WORK", 1)
    monkeypatch.setattr(threads._pool(), "num_threads", 4)
    degrees = np.full(4000, 3)
    degrees[[1000, 3999]] = 3000, 6000
    bounds = threads.edge_chunks(np.concatenate([[0], np.cumsum(degrees)]), 1)
    first, second = ((bounds[chunk], bounds[chunk + 1]) for chunk in bounds.order[:2])
    assert first[0] <= 3999 < first[1] and second[0] <= 1000 < second[1]
    assert sorted(bounds.order) == list(range(len(bounds) - 1)) and sorted(bounds.order[2:]) == bounds.order[2:]
    seen = np.zeros(4000)

    def touch(start, stop):
        seen[start:stop] += 1

    threads.run(touch, bounds)
    assert (seen == 1).all()


def test_bad_thread_count():
    with pytest.raises(ValueError):
        kernels.set_num_threads(0)
