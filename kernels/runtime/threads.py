"""One pool of threads for all kernels: `run` gives row chunks to whoever is free.

A kernel is a compiled function `f(start, stop, *args)` that writes rows `[start, stop)` and nothing else, and
releases the GIL while it runs. The calling thread works too, so a call never waits for a busy pool and calls from
several Python threads at once (torch's autograd has its own) are safe. Which thread gets which chunk changes from
call to call; the bits of the result do not, because each row is one thread's work in a fixed order.

Why not numba's `prange` (2-core Zen 4, numba 0.68): a parallel function took 2.5 to 6 s to compile, a serial one 0.4 s;
the workqueue layer needed 280 µs for an empty call beside a busy neighbour and aborts the process when two Python
threads meet in it; the omp layer needs a system libgomp beside the one that torch ships. This pool: 4 µs when the
caller is done before a worker wakes.

Torch's pool is GNU OpenMP. Its threads spin for 5 to 25 ms after each torch call and take the cores that these threads
need. With GOMP_SPINCOUNT=1000 in the environment before torch is loaded they spin for some microseconds instead:
    matrix product, dropout, relu, dropout (65,536 x 256; 2 threads)    default 110 ms, spin count 1000 60 ms
    relu of 100,000 elements, alone      default 4 µs, spin count 1000 4 µs, OMP_WAIT_POLICY=passive 14 to 48 µs
so whoever starts a process that uses both should set it (unless the user has set GOMP_SPINCOUNT or OMP_WAIT_POLICY).
"""

import functools
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from distgnn.kernels.runtime.jit import kernel

CHUNKS_PER_THREAD, OF_MANY, MANY = 8, 16, 8  # from MANY threads on, smaller chunks: the last ones end together
LARGE = 1.25  # times the mean: chunks of edges that are handed out first
FEW_EDGES = 10**5  # from which on each thread may read all of them
THREAD_WORK = 1 << 19  # elements for each thread, some 30 µs of a sum: waking one takes as long


class Pool:
    """Worker threads that wait on one queue; they are started when first needed and again after a fork."""

    def __init__(self) -> None:
        self.num_threads = _default_threads()
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        # After a fork the child has none of the threads, and a lock that another one held would stay locked: all new.
        self._queue: SimpleQueue[_Call] = SimpleQueue()
        self._started = 0
        self._lock = threading.Lock()

    def run(self, task: Callable[[], None], helpers: int) -> None:
        """Call `task()` here and on `helpers` other threads; return when all have returned."""
        if self._started < helpers:
            self._start(helpers)
        calls = [_Call(task) for _ in range(helpers)]
        for call in calls:
            self._queue.put(call)
        try:
            task()
        finally:
            for call in calls:
                call.join()

    def _start(self, wanted: int) -> None:
        with self._lock:
            while self._started < wanted:
                threading.Thread(target=_work, args=(self._queue,), daemon=True, name="distgnn-kernel").start()
                self._started += 1


class _Call:
    """One request to a worker: taken at most once, by the worker or, if none came in time, cancelled by the caller.

    Notes: the caller lets go of a task last, arrays and all. A worker that freed them while Python ends would wait for
        the GIL inside torch's destructor of a tensor, and CPython 3.11 ends a waiting thread there: the process aborts.
    """

    def __init__(self, task: Callable[[], None]) -> None:
        self.task: Callable[[], None] | None = task
        self.error: BaseException | None = None
        self._claim = threading.Lock()
        self._done = threading.Lock()
        # Taken from the start: `work` releases it, and `join` waits by taking it once more.
        self._done.acquire()

    def work(self) -> None:
        if not self._claim.acquire(blocking=False):
            return
        task, self.task = self.task, None
        try:
            if task is not None:
                task()
        except BaseException as error:
            self.error = error
        del task
        self._done.release()

    def join(self) -> None:
        # Nobody has begun: the caller takes its request back instead of waiting for a thread to wake and find no work
        # left. So a short call costs 4 µs beside a busy pool, not a thread's wake-up.
        if self._claim.acquire(blocking=False):
            self.task = None
            return  # nobody began: the chunks are all done by others
        self._done.acquire()
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # its traceback holds this frame


def _work(queue: SimpleQueue) -> None:
    while True:
        queue.get().work()


def _default_threads() -> int:
    """DISTGNN_NUM_THREADS, else OMP_NUM_THREADS (what torch obeys), else the cores this process may use."""
    for name in ("DISTGNN_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").split(",")[0].strip()
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool() -> Pool:
    """The threads of this process."""
    return Pool()


def set_num_threads(num_threads: int) -> None:
    """Use this many threads in every kernel from now on.

    Raises: ValueError if it is not a positive integer.
    """
    if int(num_threads) < 1:
        raise ValueError(f"num_threads must be at least 1, got {num_threads}")
    _pool().num_threads = int(num_threads)


def get_num_threads() -> int:
    """Number of threads a large kernel call uses."""
    return _pool().num_threads


def run(function: Callable, bounds: Sequence[int], *args: Any) -> None:
    """Call `function(bounds[i], bounds[i + 1], *args)` for every chunk, in any order, on all threads."""
    # One chunk: no pool, no counter; small calls are most calls of a training step on a small part.
    last = len(bounds) - 1
    if last == 1:
        function(bounds[0], bounds[1], *args)
        return
    # A shared iterator hands out chunks: next() on it is atomic under the GIL. Whoever is free takes the next one, so a
    # thread that lost its core for a while does not hold up the others. Many chunks a thread bound the wait at the end.
    chunks = iter(bounds.order if isinstance(bounds, EdgeChunks) else range(last))

    def task() -> None:
        for chunk in chunks:
            function(bounds[chunk], bounds[chunk + 1], *args)

    _pool().run(task, min(_pool().num_threads, last) - 1)


class EdgeChunks(list[int]):
    """Bounds of row chunks, and the order in which they are handed out."""

    def __init__(self, bounds: list[int], order: Sequence[int]):
        super().__init__(bounds)
        self.order = order


def even_chunks(num_rows: int, work_per_row: int) -> list[int]:
    """Bounds of row chunks of equal length, as a list of int."""
    pieces = _pieces(num_rows, num_rows * work_per_row)
    return [num_rows * i // pieces for i in range(pieces + 1)]


def thread_chunks(num_rows: int, each: int = 1) -> list[int]:
    """Bounds of `each` equal row chunks for each thread: for calls so short that a chunk's own cost counts."""
    pieces = 1 if _pool().num_threads == 1 else max(1, min(num_rows, each * _pool().num_threads))
    return [num_rows * i // pieces for i in range(pieces + 1)]


def edge_chunks(indptr: np.ndarray, width: int) -> EdgeChunks:
    """Bounds of row chunks with about equal numbers of edges (and rows), as a list of int.

    Notes: a hub is a chunk of its own size, since one thread writes a row. Such chunks come first: one that began when
        the others are nearly done would hold them up.
    """
    num_rows = len(indptr) - 1
    pieces = _pieces(num_rows, (num_rows + int(indptr[-1]) - int(indptr[0])) * width)
    if pieces == 1:
        return EdgeChunks([0, num_rows], (0,))
    bounds = edge_parts(indptr, pieces)
    sizes = np.diff(indptr[bounds].astype(np.int64) + bounds)
    large = np.flatnonzero(sizes > LARGE * sizes.mean())
    if len(large) == 0:
        return EdgeChunks(bounds.tolist(), range(pieces))
    large = large[np.argsort(-sizes[large], kind="stable")]
    return EdgeChunks(bounds.tolist(), [*large.tolist(), *np.delete(np.arange(pieces), large).tolist()])


def edge_parts(indptr: np.ndarray, parts: int) -> np.ndarray:
    """Bounds of `parts` ranges of rows with about equal numbers of edges (and rows), int64 [parts + 1]."""
    bounds = np.empty(parts + 1, np.int64)
    _balance(indptr, bounds)
    return bounds


def own_ranges(indptr: np.ndarray) -> list[int]:
    """Bounds of one range of rows for each thread, with about equal numbers of edges, as a list of int.

    For kernels in which every thread reads all edges and writes what belongs to its own rows.
    """
    # Cut by edges alone: the work is in the edges, and every thread reads them all anyway.
    num_rows, total = len(indptr) - 1, int(indptr[-1])
    threads = _pool().num_threads if total > FEW_EDGES else 1
    inner = np.searchsorted(indptr, [total * i // threads for i in range(1, threads)])
    return [0, *inner.tolist(), num_rows]


def _pieces(num_rows: int, work: int) -> int:
    # Chunks change who computes a row, never how: their number may depend on the threads without changing bits.
    most = _pool().num_threads
    threads = min(most, work // THREAD_WORK)
    each = 1 if threads < most or most == 1 else OF_MANY if most >= MANY else CHUNKS_PER_THREAD
    return max(1, min(num_rows, threads * each))


@kernel(counted=False)
def _balance(indptr, bounds):
    """bounds[p] = first row r with (edges before r) + (rows before r) >= share p of the total."""
    num_rows = indptr.shape[0] - 1
    pieces = bounds.shape[0] - 1
    # Plainly: cut the list of (edges + 1 per row) into equal shares. Counting rows as well keeps a million rows without
    # an edge from being one chunk; a hub with most edges is still one chunk, since one thread writes a row.
    total = indptr[num_rows] - indptr[0] + num_rows
    for piece in range(pieces + 1):
        share = total * piece // pieces
        low, high = 0, num_rows
        while low < high:
            middle = (low + high) // 2
            if indptr[middle] - indptr[0] + middle < share:
                low = middle + 1
            else:
                high = middle
        bounds[piece] = low
    bounds[pieces] = num_rows
