"""What the launcher sees: ranks of which none tells anything any more, and machines that do not answer."""

import json
import os
import stat
import sys
import time
from types import SimpleNamespace

import pytest

from distgnn.system.jobs import run_watch, supervise
from distgnn.system.jobs.rank_log import RankLog
from distgnn.system.jobs.run_watch import RunWatch, first_ranks, limit_of, ranks_on
from distgnn.system.jobs.watchdog import HUNG, Watchdog


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A watch over a run with a limit of 10 s; a second passes before each look."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(run_watch, "time", SimpleNamespace(monotonic=lambda: clock.now))
    (tmp_path / "config.toml").write_text("[train]\ntimeout = 10.0\n")
    RankLog(str(tmp_path), 1).set_status("of a rank that is gone")
    found = RunWatch(tmp_path)

    def looks(count, meanwhile=lambda: None):
        said = []
        for _ in range(count):
            clock.now += 1
            meanwhile()
            said.append(found.look())
        return [text for text in said if text]

    return SimpleNamespace(watch=found, looks=looks, log=RankLog(str(tmp_path), 0), clock=clock, folder=tmp_path)


def test_ranks_that_all_fell_silent_are_noticed_within_the_limit(run):
    run.log.set_status("beat 1")
    assert run.looks(7) == []
    assert run.looks(2)[0] == "no rank has told what it does for 7 s (--timeout 10): all are stopped"


def test_ranks_of_other_machines_are_heard_late(run):
    run.watch.shortest = 120.0
    run.log.set_status("beat 1")
    assert run.looks(118) == []
    assert run.looks(4)


def test_ranks_that_tell_start_or_have_left_are_not_missed(run):
    assert run.looks(30) == []  # they start
    assert run.looks(30, lambda: run.log.set_status(f"beat {run.clock.now}")) == []
    run.log.close()
    assert run.looks(30) == []


def test_time_in_which_the_launcher_did_not_run_does_not_count(run):
    run.log.set_status("beat 1")
    run.looks(5)
    run.clock.now += 60
    assert run.looks(7) == []


def test_a_single_rank_tells(tmp_path):
    with Watchdog(SimpleNamespace(rank=0, size=1), RankLog(str(tmp_path), 0), 5.0).running() as dog:
        dog._thread.join(0.1)
        assert '"beat": 1' in (tmp_path / "logs" / "rank-0.status").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_job_without_new_statuses_is_ended(monkeypatch, capfd):
    monkeypatch.setattr(supervise, "LOOK_SECONDS", 0.05)
    watch = SimpleNamespace(look=lambda: "no rank has told", close=lambda: None, exit_code=HUNG)
    assert supervise.supervise(["sleep", "60"], dict(os.environ), watch=lambda: watch) == HUNG
    assert "distgnn: error: no rank has told" in capfd.readouterr().err


HOSTS = [("a", 2), ("b", 1)]


@pytest.fixture
def far(tmp_path, monkeypatch):
    """A run with a limit of 40 s on two machines; `far.up` are those that answer, `far.said` what was said."""
    (tmp_path / "config.toml").write_text("[train]\ntimeout = 40.0\n")
    RankLog(str(tmp_path), 1).set_status(json.dumps({"seconds": 3000}))  # of a rank that is gone
    found = RunWatch(tmp_path, HOSTS, lambda text: found.said.append(text))
    found.said, found.up, found.asked = [], ["a"], []

    def answering(hosts, seconds, over):
        found.asked.append(seconds)
        return [host for host in hosts if host[0] in found.up]

    monkeypatch.setattr(run_watch, "answering", answering)
    return found


def tell(far, rank: int, seconds: float) -> None:
    """A rank tells how long its phase lasts, and the launcher looks."""
    (far.run_dir / "logs" / f"rank-{rank}.status").write_text(json.dumps({"seconds": seconds}))
    far.look()
    if far._asking is not None:
        far._asking.join()


def test_a_machine_that_is_cut_off_is_named_once(far):
    for seconds in (1, 11, 12):
        far._ask_at = 0
        tell(far, 0, seconds)
    assert far.said == ["rank 2 on host b does not answer"]
    assert far.asked == [15.0, 15.0]


def test_machines_are_asked_now_and_then_once_a_phase_is_long(far):
    far.up = ["a", "b"]
    for seconds in (8, 9):
        (far.run_dir / "logs" / "rank-2.status").write_text("{" * seconds)
        tell(far, 0, seconds)
    assert far.asked == []
    for seconds in (11, 12, 13):
        tell(far, 0, seconds)
    assert (far.said, len(far.asked)) == ([], 1)


def test_a_machine_that_came_back_is_named_again(far):
    for seconds in (1, 11, 0.1, 11):
        far._ask_at = 0
        tell(far, 0, seconds)
    assert len(far.said) == 2


@pytest.mark.parametrize("text", [None, "[train]\n", "[train]\ntimeout = 0.0\n", "x"])
def test_without_a_limit_nobody_is_asked_or_missed(far, text):
    (far.run_dir / "config.toml").unlink()
    if text is not None:
        (far.run_dir / "config.toml").write_text(text)
    tell(far, 0, 1e6)
    far._new_at = dict.fromkeys(far._new_at, 0.0)
    assert far.look() is None and far.asked == []


@pytest.mark.parametrize("value", ["9" * 400, "'x'", "[]", ""])
def test_a_limit_that_is_no_number_is_none(tmp_path, value):
    assert limit_of(tmp_path) == 0
    (tmp_path / "config.toml").write_text(f"[train]\ntimeout = {value}\n")
    assert limit_of(tmp_path) == 0


ROOMS = [("a", 2), ("b", 1), ("c", 3)]
MPIEXEC = """#!/bin/sh
# Hydra's options: -n 1 -f HOSTS PROGRAM …
[ "$1" = --version ] && { echo HYDRA; exit 0; }
grep -q a: $4 && exit 0
grep -q b: $4 && exit 3
sleep 900
"""


def test_hosts_that_fail_or_are_silent_do_not_answer(tmp_path, monkeypatch):
    program = tmp_path / "mpiexec"
    program.write_text(MPIEXEC)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("DISTGNN_MPIEXEC", str(program))
    began = time.monotonic()
    assert run_watch.answering(ROOMS, seconds=5.0) == [("a", 2)]
    assert time.monotonic() - began < 300  # 900 if it waited for the one that does not answer


def test_ranks_fill_the_first_hosts():
    assert first_ranks(ROOMS, 6) == ROOMS
    assert first_ranks(ROOMS, 4) == [("a", 2), ("b", 1), ("c", 1)]
    assert first_ranks(ROOMS, 2) == [("a", 2)]
    assert ranks_on(ROOMS) == {"a": [0, 1], "b": [2], "c": [3, 4, 5]}
