"""What the watchdog takes for a hang, and what not: a second look, pauses and compilation."""

import gc
import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from distgnn.kernels.runtime import jit
from distgnn.system.jobs import watchdog
from distgnn.system.jobs.rank_log import RankLog


class Clock:
    """Time that passes when somebody waits; `meanwhile` happens during the next wait, `delay` makes it longer."""

    def __init__(self):
        self.now, self.delay, self.meanwhile = 1000.0, 0.0, lambda: None

    def monotonic(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds + self.delay
        self.delay = 0.0
        self.meanwhile()
        return False


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.fixture
def dog(clock, tmp_path):
    """Rank 0 of two with a limit of 8 s, which has been in a phase for 10 s."""
    dog = watchdog.Watchdog(SimpleNamespace(rank=0, size=2), RankLog(str(tmp_path), 0), 8.0)
    dog._over = clock
    dog.phase = "epoch 3, forward"
    clock.now += 10
    tell(dog, 1, 0, 10)
    return dog


def tell(dog, rank: int, beat: int, seconds: float) -> None:
    status = {"beat": beat, "phase": "epoch 3, forward", "seconds": seconds, "waits": False, "place": "here"}
    (dog.log.folder / f"rank-{rank}.status").write_text(json.dumps(status))


def test_a_rank_that_stands_still_is_blamed(dog, clock):
    clock.meanwhile = lambda: tell(dog, 1, 1, 12)
    assert "rank 1 is in epoch 3, forward for 12 s at here; the others wait" in dog._hang()
    clock.meanwhile = lambda: None
    assert "rank 1 does not answer" in dog._hang()


def test_a_job_that_moves_again_at_the_second_look_goes_on(dog, clock):
    def move():
        dog.phase = "epoch 4, forward"

    clock.meanwhile = move
    assert dog._hang() is None


def test_a_rank_that_answers_again_gets_the_time_it_was_stopped_for(dog, clock):
    clock.meanwhile = lambda: tell(dog, 1, 1, 3)
    assert dog._hang() is None


def test_time_in_which_the_process_did_not_run_does_not_count(dog, clock):
    clock.delay = 22.0
    dog._pause(1.0)
    assert dog._age() == 11


def test_compiling_does_not_count_up_to_a_limit(dog, clock, monkeypatch):
    monkeypatch.setattr(watchdog, "_compiles", lambda: True)
    monkeypatch.setattr(watchdog, "COMPILE_SECONDS", 2.5)
    for _ in range(5):
        dog._pause(1.0)
    assert dog._age() == 12


def test_a_thread_that_compiles_is_seen():
    inside, over = threading.Event(), threading.Event()

    def wait(signature):
        inside.set()
        over.wait(30)

    compile_once = jit._under_lock(wait, SimpleNamespace(stats=numba.njit(lambda: 0).stats, _cache=jit.NoCache()))
    assert not watchdog._compiles()
    thread = threading.Thread(target=compile_once, args=((),))
    thread.start()
    try:
        assert inside.wait(30) and watchdog._compiles()
    finally:
        over.set()
        thread.join()
    assert any(part in str(Path(numba.core.__file__).parent / "dispatcher.py") for part in watchdog.COMPILING_IN)


def test_frames_are_taken_without_a_collection_and_nothing_else_is(monkeypatch):
    """CPython 3.11 was seen to give a Trainer where the frame of the thread that trains had been."""
    real, collects = sys._current_frames(), []
    monkeypatch.setattr(sys, "_current_frames", lambda: collects.append(gc.isenabled()) or real | {-1: "a Trainer"})
    assert watchdog._frames().keys() == real.keys()
    assert collects == [False] and gc.isenabled()
