"""Ranks that are started again: after which ends, with which arguments, and how long it waits in between."""

import os

import pytest

from distgnn.errors import InputError
from distgnn.system.jobs.restarts import OWN_FAILURE, resumed, run_again, run_dir_in, with_run_dir

WORDS = ["train", "parts", "--run-dir", "run", "--overwrite", "--epochs", "9"]


@pytest.fixture
def runs(tmp_path):
    """Run a job whose starts end as listed: (exit code, new checkpoint or None). Returns what was done."""

    def run(limit, ends, words=WORDS):
        seen, pauses, left = [], [], list(ends)

        def start(given):
            seen.append(given)
            code, epochs = left.pop(0)
            if epochs is not None:
                made = tmp_path / "checkpoint" / f"epoch-{epochs:08d}"
                made.mkdir(parents=True)
                os.utime(made, (1e9, 1e9))  # within a tick of the clock, as quick ones are
                (tmp_path / "config.toml").write_text("")
            return code

        return run_again(words, start, limit, tmp_path, sleep=pauses.append), seen, pauses

    return run


def test_a_run_that_ends_well_is_started_once(runs, capsys):
    assert runs(3, [(0, 10)]) == (0, [WORDS], [])
    assert capsys.readouterr().err == ""


def test_dead_ranks_go_on_from_the_newest_checkpoint(runs, capsys):
    code, seen, pauses = runs(3, [(9, 10), (255, 20), (0, 30)])
    assert (code, pauses) == (0, [1, 1])
    again = ["train", "--resume", "parts", "--run-dir", "run", "--epochs", "9"]
    assert seen == [WORDS, again, again]
    assert "restart 2 of 3 in 1 s from checkpoint/epoch-00000020" in capsys.readouterr().err


def test_pauses_grow_while_nothing_is_gained_and_the_limit_holds(runs, capsys):
    code, seen, pauses = runs(8, [(137, None)] * 9)
    assert (code, len(seen), pauses) == (137, 9, [1, 2, 4, 8, 16, 32, 60, 60])
    assert "all 8 restarts (--restarts) are used up" in capsys.readouterr().err


def test_a_failure_of_its_own_that_comes_again_ends_the_last_restart_as_such(runs, capsys):
    assert runs(1, [(OWN_FAILURE, None)] * 2)[0] == OWN_FAILURE
    assert "all 1 restarts (--restarts) are used up" in capsys.readouterr().err


def test_an_old_run_that_was_not_replaced_yet_is_not_resumed(runs, tmp_path):
    (tmp_path / "checkpoint" / "epoch-00000200").mkdir(parents=True)
    (tmp_path / "config.toml").write_text("old")
    assert runs(1, [(9, None), (0, None)])[1] == [WORDS, WORDS]


@pytest.mark.parametrize("code", [2, 130, 138, 143])
def test_what_would_come_again_or_was_asked_for_is_not_started_again(runs, code):
    assert runs(3, [(code, 10)]) == (code, [WORDS], [])


def test_a_traceback_that_comes_twice_at_the_same_place_is_not_tried_a_third_time(runs):
    assert len(runs(5, [(1, 10), (1, None)])[1]) == 2
    assert len(runs(5, [(1, 20), (1, 30), (0, None)])[1]) == 3


def test_arguments():
    assert resumed(["train", "a", "--config", "b", "--resume", "--config=c"]) == ["train", "--resume", "a"]
    assert with_run_dir(["train", "a"], "r") == ["train", "--run-dir", "r", "a"]
    assert str(run_dir_in(["train", "a", "--run-dir", "r"])) == str(run_dir_in(["train", "--run-dir=r"])) == "r"
    with pytest.raises(InputError, match="--restarts needs --run-dir"):
        run_dir_in(["train", "a", "--run-dir"])
