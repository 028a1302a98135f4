"""What the watchdog takes for a hang, and when; what it does not: ranks that recover, pauses and compilation."""

import json
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from distgnn.system.jobs import doing, watchdog
from distgnn.system.jobs.rank_log import RankLog
from distgnn.system.jobs.watchdog import fault, phase_seconds


class Clock:
    """Time that passes when somebody waits; `meanwhile` happens during the wait, `delay` makes the next one longer."""

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
def make(clock, tmp_path):
    """Make the watchdog of a rank of three with a limit of 16 s: a beat is 1 s, a phase may last 14.4 s."""

    def make(rank: int) -> watchdog.Watchdog:
        dog = watchdog.Watchdog(SimpleNamespace(rank=rank, size=3), RankLog(str(tmp_path), rank), 16.0)
        dog._over = clock
        dog._place = lambda: ("exchange.py:1 in finish", "exchange")
        dog.phase = "epoch 3, forward"
        return dog

    return make


@pytest.fixture
def dog(make):
    return make(0)


def checks(clock, dog, others, until: float) -> str | None:
    """Let time pass until the phase of `dog` lasts so long, while `others(seconds)` happens at every look."""
    began = clock.now
    while clock.now < began + until:
        dog._pause(dog._rest())
        others(clock.now - began)
        said = dog._check()
        if said is not None:
            return said
    return None


def tell(dog, rank: int, beat: float, seconds: float, waits: str = "exchange") -> None:
    status = {"beat": beat, "phase": "epoch 3, forward", "seconds": seconds, "waits": waits, "place": "here"}
    (dog.log.folder / f"rank-{rank}.status").write_text(json.dumps(status))


def test_a_rank_that_stands_still_is_named_within_the_limit(dog, clock):
    def others(now):
        tell(dog, 1, now, now, waits="")
        tell(dog, 2, now, now)

    said, began = checks(clock, dog, others, 60), clock.now - 1000
    assert said.startswith(
        "nothing moved for 14.4 s (--timeout 16): rank 1 is in epoch 3, forward for 14 s at here; the"
    )
    assert began < 16


def test_a_rank_that_does_not_answer_is_named_within_the_limit(dog, clock):
    said = checks(clock, dog, lambda now: [tell(dog, 1, now, now), tell(dog, 2, 0, 2)], 60)
    assert ": rank 2 does not answer (stopped, or its machine is gone); it was last in epoch 3" in said
    assert clock.now - 1000 < 16


def test_the_next_rank_speaks_where_the_first_does_not_answer(make, clock):
    """Within the limit, too: the first machine may be the one that is gone."""
    dog = make(1)
    said = checks(clock, dog, lambda now: [tell(dog, 0, 0, 2), tell(dog, 2, now, now)], 60)
    assert ": rank 0 does not answer" in said
    assert clock.now - 1000 < 16


def test_where_nobody_waits_nobody_is_said_to(dog):
    for rank in range(3):
        tell(dog, rank, 0, 20, waits="")
    said = dog._statuses.blame()
    assert said.count("is in epoch 3, forward") == 3 and "others" not in said


def test_one_rank_speaks(make, clock):
    dog = make(1)
    assert checks(clock, dog, lambda now: [tell(dog, 0, now, now), tell(dog, 2, 0, 2)], 60) is None


def test_a_job_whose_stopped_rank_has_recovered_goes_on(dog, clock):
    """Stopped from second 2 to second 14: what it tells then is that its phase has lasted for 2 s."""

    def others(now):
        tell(dog, 1, now, now)
        tell(dog, 2, max(now - 14, 0), 2 + max(now - 14, 0))

    assert checks(clock, dog, others, 20) is None


def test_a_rank_that_compiles_is_waited_for(dog, clock):
    assert checks(clock, dog, lambda now: [tell(dog, rank, now, 1) for rank in (1, 2)], 60) is None


def test_a_phase_that_ended_is_none_that_lasts(dog, clock):
    def others(now):
        tell(dog, 1, now, now)
        tell(dog, 2, 0, 2)
        if 13 < now < 14.3:
            dog.phase = "epoch 4, forward"

    assert checks(clock, dog, others, 26) is None


def test_all_that_were_stopped_together_are_heard_anew(dog, clock):
    """All processes of a machine stop for a minute, late in a phase: this rank wakes before the others."""

    def others(now):
        for rank in (1, 2):
            tell(dog, rank, min(now, 13.0), min(now, 13.0) - 3)
        clock.delay = 60.0 if 13 <= now < 14 else 0.0

    assert checks(clock, dog, others, 76) is None


def test_time_in_which_the_process_did_not_run_does_not_count(dog, clock):
    clock.now += 10
    clock.delay = 22.0
    dog._pause(1.0)
    assert dog._age() == 11


@pytest.mark.parametrize(("what", "value"), [("compiling", ["spmm"]), ("importing", lambda thread: True)])
def test_compiling_and_importing_do_not_count_up_to_a_limit(dog, clock, monkeypatch, what, value):
    monkeypatch.setattr(watchdog, what, value)
    monkeypatch.setattr(watchdog, "COMPILE_SECONDS", 2.5)
    for _ in range(5):
        dog._pause(1.0)
    assert dog._age() == 2


def test_a_wait_says_so_itself(dog, clock):
    del dog._place
    with doing.waiting("Allreduce"):
        assert dog._place()[1] == "Allreduce"
    assert dog._place()[1] == ""


TOLD = {"phase": "forward", "seconds": 2.5, "waits": "", "place": "a.py:1"}


def test_a_rank_that_works_waits_or_is_silent():
    text = json.dumps(TOLD)
    assert fault(text, answers=True) == "is in forward for 2 s at a.py:1"
    assert fault(json.dumps(TOLD | {"waits": "exchange"}), answers=True) is None
    assert fault(text, answers=False).startswith("does not answer")
    assert fault(json.dumps({"ended": True}), answers=False) == "has ended"
    assert phase_seconds(text) == 2.5


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", "{}", json.dumps(TOLD | {"seconds": 10**400}), "[" * 10**5])
def test_damaged_words_are_none(text):
    assert fault(text, answers=True) == "wrote no status"
    assert phase_seconds(text) == float("inf")


LATE = """
import signal, time
from distgnn.system.jobs.watchdog import start_limit
with start_limit({seconds}, shortest=0.1):
    time.sleep({inside})
raise SystemExit(signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0))
"""


@pytest.mark.parametrize(
    ("seconds", "inside", "code"),
    [(0.1, 900, -signal.SIGALRM), (900, 0, 0), (0, 0.3, 0)],
    ids=["late", "in time", "off"],
)
def test_a_start_that_takes_too_long_is_ended(seconds, inside, code):
    done = subprocess.run([sys.executable, "-c", LATE.format(seconds=seconds, inside=inside)], timeout=900)
    assert done.returncode == code
