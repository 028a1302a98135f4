"""Ranks of which none tells anything any more: all are stopped, or the only one."""

import os
import sys
from types import SimpleNamespace

import pytest

from distgnn.system.jobs import status_check, supervise
from distgnn.system.jobs.rank_log import RankLog
from distgnn.system.jobs.status_check import StatusCheck
from distgnn.system.jobs.watchdog import HUNG, Watchdog


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A status check of a run with a limit of 10 s; a second passes before each look."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(status_check, "time", SimpleNamespace(monotonic=lambda: clock.now))
    (tmp_path / "config.toml").write_text("[train]\ntimeout = 10.0\n")
    RankLog(str(tmp_path), 1).set_status("of a rank that is gone")
    found = StatusCheck(tmp_path)

    def looks(count, meanwhile=lambda: None):
        said = []
        for _ in range(count):
            clock.now += 1
            meanwhile()
            said.append(found.look())
        return [text for text in said if text]

    return SimpleNamespace(status_check=found, looks=looks, log=RankLog(str(tmp_path), 0), clock=clock, folder=tmp_path)


def test_ranks_that_all_fell_silent_are_noticed_within_the_limit(run):
    run.log.set_status("beat 1")
    assert run.looks(7) == []
    assert run.looks(2)[0] == "no rank has told what it does for 7 s (--timeout 10): all are stopped"


def test_ranks_of_other_machines_are_heard_late(run):
    run.status_check.shortest = 120.0
    run.log.set_status("beat 1")
    assert run.looks(118) == []
    assert run.looks(4)


def test_one_that_tells_is_enough(run):
    assert run.looks(30, lambda: run.log.set_status("again")) == []


def test_ranks_that_have_not_told_yet_are_starting(run):
    assert run.looks(30) == []


def test_ranks_that_have_left_need_not_tell(run):
    run.log.set_status("beat 1")
    run.looks(1)
    run.log.close()
    assert run.looks(30) == []


def test_time_in_which_the_launcher_did_not_run_does_not_count(run):
    run.log.set_status("beat 1")
    run.looks(5)
    run.clock.now += 60
    assert run.looks(7) == []


def test_without_a_limit_nobody_is_missed(run):
    (run.folder / "config.toml").write_text("[train]\ntimeout = 0.0\n")
    run.log.set_status("beat 1")
    assert run.looks(30) == []


def test_a_single_rank_tells(tmp_path):
    with Watchdog(SimpleNamespace(rank=0, size=1), RankLog(str(tmp_path), 0), 5.0).running() as dog:
        dog._thread.join(0.1)
        assert '"beat": 1' in (tmp_path / "logs" / "rank-0.status").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_job_without_new_statuses_is_ended(monkeypatch, capfd):
    monkeypatch.setattr(supervise, "LOOK_SECONDS", 0.05)
    watch = SimpleNamespace(look=lambda: "no rank has told", exit_code=HUNG)
    assert supervise.supervise(["sleep", "60"], dict(os.environ), status_check=watch) == HUNG
    assert "distgnn: error: no rank has told" in capfd.readouterr().err
