"""The launcher asks machines while nothing moves, and names those that do not answer."""

import json

import pytest

from distgnn.system.jobs import host_check
from distgnn.system.jobs.host_check import HostCheck

HOSTS = [("a", 2), ("b", 1)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run with a limit of 40 s on two machines; `run.up` are those that answer, `run.said` what was said."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "config.toml").write_text("[train]\ntimeout = 40.0\n")
    found = HostCheck(tmp_path, HOSTS, lambda text: found.said.append(text))
    found.said, found.up, found.asked = [], ["a"], []

    def answering(hosts, seconds, over):
        found.asked.append(seconds)
        return [host for host in hosts if host[0] in found.up]

    monkeypatch.setattr(host_check, "answering", answering)
    return found


def tell(run, rank: int, seconds: float) -> None:
    (run.run_dir / "logs" / f"rank-{rank}.status").write_text(json.dumps({"seconds": seconds}))


def test_a_machine_that_is_cut_off_is_named_once(run):
    for seconds in (1, 11, 12):
        tell(run, 0, seconds)
        run._ask_again_at = 0
        run.look()
    assert run.said == ["rank 2 on host b does not answer"]
    assert run.asked == [15.0, 15.0]


def test_nobody_is_asked_while_phases_are_short(run):
    tell(run, 1, 3000)  # a rank that died told this
    for seconds in (8, 9):
        tell(run, 0, seconds)
        (run.run_dir / "logs" / "rank-2.status").write_text("{" * seconds)
        run.look()
    assert run.asked == []


def test_it_asks_now_and_then(run):
    run.up = ["a", "b"]
    for seconds in (1, 11, 12, 13):
        tell(run, 0, seconds)
        run.look()
    assert (run.said, len(run.asked)) == ([], 1)


def test_a_machine_that_came_back_is_named_again(run):
    for seconds in (1, 11, 0.1, 11):
        run._ask_again_at = 0
        tell(run, 0, seconds)
        run.look()
    assert len(run.said) == 2


@pytest.mark.parametrize("text", [None, "[train]\n", "[train]\ntimeout = 0.0\n", "x"])
def test_without_a_limit_nobody_is_asked(run, text):
    (run.run_dir / "config.toml").unlink()
    if text is not None:
        (run.run_dir / "config.toml").write_text(text)
    tell(run, 0, 1e6)
    run.look()
    assert run.asked == []
