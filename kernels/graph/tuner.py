"""Which choices of `Tuning` are quickest on this machine: questions, each with candidates that take turns.

A question's candidates are tunings, its call is a public kernel that runs under each of them in turn. The first turn
compiles and does not count; of the others the least time does. Another choice than the default must be clearly better.
"""

import functools
import itertools
import math
import time
from bisect import insort
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distgnn.kernels.graph.aggregate import BLOCK_BYTES, block_csr, spmm, spmm_blocked
from distgnn.kernels.rowwise.matmul import product
from distgnn.kernels.runtime.arrays import empty_rows
from distgnn.kernels.runtime.tiles import registers
from distgnn.kernels.runtime.tuning import AHEAD_SIZES, NEVER, Tuning, held_tuning, holding

WORTH, BLOCKS_WORTH = 0.95, 0.85  # of the default's time; blocks take memory for a second copy of the indices
BYTES_AHEAD = tuple(1 << power for power in range(11, 16))  # 2 to 32 KiB
WINDOW, WINDOWS = 32 << 20, 4  # bytes of source rows for a call; calls take turns, so that rows come from memory
ROW_ARCS, MOST_ARCS = 32, 1 << 18
PRODUCT_ROWS, PRODUCT_WIDTH = 1 << 11, 256
SECONDS, LEAST_TURNS = 0.2, 3  # of a question, at most; of a candidate, also where that takes longer
TURNS, AGAIN = 8, 1.02  # where time is left; until its least time was met twice within this
SLOW = 3.0  # times the least: a candidate that has two turns only

DEFAULTS = Tuning()


class Question(NamedTuple):
    """Which value of a field of `Tuning` makes a call quickest?

    make: gives the call, which obeys the tuning held; worth: share of the default's time that another value must beat.
    """

    field: str
    values: tuple[int, ...]
    make: Callable[[], Callable[[], object]]
    worth: float = WORTH


def tune(
    questions: list[Question], times: Callable[[Question, Tuning], dict[int, float]], start: Tuning = DEFAULTS
) -> Tuning:
    """The answers, one after the other: each is measured with those before it, and another than the default twice.

    Args: times: of a question and a tuning, seconds by value (`measured`, or a table); start: the defaults.
    """
    found = start
    for question in questions:
        default = getattr(found, question.field)
        value = best(times(question, found), default, question.worth)
        if value != default:
            value = best(times(question._replace(values=(default, value)), found), default, question.worth)
        found = found._replace(**{question.field: value})
    return found


def best(seconds: dict[int, float], default: int, worth: float) -> int:
    """The value with the least time, if that is less than this share of the default's."""
    least = min(seconds, key=lambda value: seconds[value])
    return least if seconds[least] < worth * seconds.get(default, math.inf) else default


def measured(question: Question, held: Tuning) -> dict[int, float]:
    """Seconds by value: the second least of several turns, in which candidates follow one another."""
    call = question.make()
    spent: dict[int, list[float]] = {value: [] for value in question.values}
    candidates = {value: held._replace(**{question.field: value}) for value in question.values}
    for tuning in candidates.values():
        seconds(call, tuning)
    began, going = time.perf_counter(), list(candidates)
    while going:
        for value in going:
            insort(spent[value], seconds(call, candidates[value]))
        # Other work on the machine makes times longer: a least time that is met again is a true one.
        least, over = min(times[0] for times in spent.values()), time.perf_counter() - began > SECONDS
        going = [
            value
            for value, times in spent.items()
            if len(times) < 2 or (times[0] < SLOW * least and _goes_on(times, over))
        ]
    return {value: times[1] for value, times in spent.items()}


def _goes_on(times: list[float], over: bool) -> bool:
    return len(times) < LEAST_TURNS or (not over and (len(times) < TURNS or times[1] > AGAIN * times[0]))


def seconds(call: Callable[[], object], tuning: Tuning) -> float:
    """Of one call under a tuning, of all threads together: time in which others have the cores does not count."""
    with holding(tuning):
        start = time.process_time()
        call()
        return time.process_time() - start


def kernel_questions() -> list[Question]:
    """What is asked of our kernels alone; they share the memory of their rows."""
    memory, register = functools.cache(_memory), registers()[0]
    questions = [
        Question(f"ahead_{size}", BYTES_AHEAD, functools.partial(_sums, memory, size))
        for size in AHEAD_SIZES
        if size <= 16 * register  # what a pass may read of a row
    ]
    questions.append(Question("vectors", (8, 16), functools.partial(_sums, memory, 16 * register)))
    questions.append(Question("blocked", (0, 1), functools.partial(_blocked, memory, 1024), BLOCKS_WORTH))
    questions.append(Question("past_caches", (64 << 20, NEVER), functools.partial(_large_result, memory)))
    return [*questions, Question("product_rows", (48, 96, 192), _product)]


def _memory() -> np.ndarray:
    memory = empty_rows((WINDOWS * WINDOW // 4,), np.float32)
    memory.fill(1)
    return memory


def _sums(memory: Callable[[], np.ndarray], row_bytes: int) -> Callable[[], object]:
    """Sums of rows from memory."""
    windows = memory().reshape(WINDOWS, -1, row_bytes // 4)
    arcs = min(MOST_ARCS, windows.shape[1])
    indices = _sources(windows.shape[1], arcs)
    indptr = np.arange(0, arcs + 1, ROW_ARCS)
    out, turns = empty_rows((len(indptr) - 1, windows.shape[2]), np.float32), itertools.cycle(windows)
    return lambda: spmm(indptr, indices, next(turns), out=out)


def _sources(num: int, arcs: int) -> np.ndarray:
    """Half of the arcs from a sixteenth of the sources, as hubs are."""
    sources = np.random.default_rng(0).integers(0, num, arcs, np.int32)
    sources[::2] //= 16
    return sources


def _product() -> Callable[[], object]:
    rows, weight = (np.ones((size, PRODUCT_WIDTH), np.float32) for size in (PRODUCT_ROWS, PRODUCT_WIDTH))
    out = np.empty_like(rows)
    return lambda: product(rows, weight, out=out)


def _large_result(memory: Callable[[], np.ndarray]) -> Callable[[], object]:
    """Sums of few rows into a result of 64 MiB, which is read afterwards."""
    result, few = memory()[: 64 << 18].reshape(-1, 256), memory()[-(1 << 18) :].reshape(-1, 256)
    indptr, again = np.arange(0, 2 * len(result) + 1, 2), np.arange(0, len(result) + 1, 64)
    indices, own = np.arange(indptr[-1], dtype=np.int32) % len(few), np.arange(len(result), dtype=np.int32)
    return lambda: (spmm(indptr, indices, few, out=result), spmm(again, own, result))


def _blocked(memory: Callable[[], np.ndarray], row_bytes: int) -> Callable[[], object]:
    """Sums in which each row of sources is read 24 times, by blocks or not."""
    feats = memory()[:BLOCK_BYTES].reshape(-1, row_bytes // 4)
    arcs, rows = 24 * len(feats), len(feats) // 16
    indices = _sources(len(feats), arcs)
    indptr, out = np.arange(0, arcs + 1, arcs // rows), empty_rows((rows, feats.shape[1]), np.float32)
    blocks = block_csr(indptr, indices, len(feats), BLOCK_BYTES // row_bytes)

    def call() -> None:
        if held_tuning().goes_by_blocks(row_bytes):
            spmm_blocked(blocks, feats, out=out)
        else:
            spmm(indptr, indices, feats, out=out)

    return call
