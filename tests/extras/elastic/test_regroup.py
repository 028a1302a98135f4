"""Who goes on after a fault: how many ranks, and on which partition folder."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from process_tree import descendants

from distgnn.config import LaunchConfig
from distgnn.extras.elastic import regroup
from distgnn.extras.elastic.regroup import Elastic
from distgnn.system.jobs.supervise import LOST
from distgnn.train.checkpoint import files as files
from distgnn.train.run.run_folder import read_metrics

WORDS = ["train", "parts", "--run-dir", "run"]


class Rooms:
    """Places with room for as many ranks as listed, one number per restart."""

    def __init__(self, *rooms):
        self.rooms = list(rooms)

    def room(self):
        return self.rooms.pop(0)

    def start(self, num_ranks):
        return lambda words: num_ranks


@pytest.fixture
def choose(tmp_path, monkeypatch):
    """`choose(rooms, fruitless, min_ranks=…)`: (ranks or exit code, folder's name) of each restart."""

    def merge(command, **_):
        out = Path(command[command.index("--out") + 1])
        out.mkdir(parents=True)
        (out / "partition.json").touch()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(regroup.subprocess, "run", merge)

    def choose(rooms, fruitless, **options):
        chosen = Elastic(WORDS, 1, 4, LaunchConfig(restarts=9, **options), tmp_path)
        places, seen = Rooms(*rooms), []
        for count in fruitless:
            team = chosen.team(places, count)
            seen.append((team.start(team.words), Path(team.words[1]).name))
        return seen

    return choose


def test_all_ranks_again_while_there_is_a_machine_for_each(choose):
    assert choose([4, 4, 4], [1, 1, 2]) == [(4, "parts")] * 3


def test_fewer_machines_fewer_ranks_and_back(choose):
    assert choose([3, 2, 4], [1, 1, 1], min_ranks=2) == [(3, "parts-3"), (2, "parts-2"), (4, "parts")]


def test_ranks_that_die_twice_are_one_less_and_tried_again_after_a_checkpoint(choose):
    seen = choose([4] * 6, [1, 2, 3, 4, 5, 1], min_ranks=2)
    assert [ranks for ranks, _ in seen] == [4, 3, 3, 2, 2, 4]


def test_never_fewer_than_asked_for(choose, capsys):
    assert choose([4, 4, 1], [1, 2, 3], min_ranks=4) == [(4, "parts"), (4, "parts"), (LOST, "parts")]
    assert "machines for 1 ranks, and 4 are needed: waiting" in capsys.readouterr().err
    assert choose([3], [1]) == [(LOST, "parts")]  # without --min-ranks


def test_parts_that_cannot_be_merged_are_said(choose, monkeypatch, capsys):
    monkeypatch.setattr(regroup.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 2))
    assert choose([3], [1], min_ranks=2) == [(LOST, "parts")]
    assert "cannot go on with 3 ranks: merging parts ended with exit code 2" in capsys.readouterr().err


def test_settings_of_restarts_are_checked(refused, parts):
    refused("train", parts, "--min-ranks", 1, says="it needs --restarts")
    refused("train", parts, "--restarts", 1, "--min-ranks", 0, says="min_ranks is 0: expected at least 1")


def ranks_below(pid: int) -> list[int]:
    found = []
    for below in descendants(pid):
        try:
            words = Path(f"/proc/{below}/environ").read_bytes().split(b"\0")
            keeper = b"keeper.py" in Path(f"/proc/{below}/cmdline").read_bytes()
        except OSError:
            continue
        is_rank = any(word.startswith((b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=")) for word in words)
        found += [below] if is_rank and not keeper else []
    return found


@pytest.mark.slow
def test_ranks_that_die_twice_are_gone_on_without(ran, parts, two_parts, tmp_path):
    words = ["--hidden-feats", 8, "--epochs", 600, "--dtype", "float64", "--dropout", "0.5", "--quiet"]
    words += ["--checkpoint-every", 20]  # dropout masks belong to vertices, not to ranks
    ran("train", parts, *words, "--run-dir", tmp_path / "whole")
    folder = tmp_path / "run"
    words += ["--run-dir", folder, "--restarts", 3, "--min-ranks", 1]
    command = [sys.executable, "-m", "distgnn.cli", *map(str, ("train", two_parts, *words))]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    first = wait_for_ranks(job, 2, set(), lambda: bool(files.find_checkpoints(folder)))
    os.kill(first[-1], signal.SIGKILL)
    second = wait_for_ranks(job, 2, set(first), lambda: True)
    os.kill(second[0], signal.SIGKILL)
    _, err = job.communicate(timeout=1800)
    assert job.returncode == 0, err
    assert "restart 1 of 3 in 1 s from checkpoint/epoch-" in err
    assert f"going on with 1 ranks in place of 2, on {folder / 'merged' / 'parts-1'}" in err
    assert json.loads((folder / "summary.json").read_text())["ranks"] == 1
    one, other = (read_metrics(run / "metrics.jsonl") for run in (folder, tmp_path / "whole"))
    assert [record["epoch"] for record in one] == list(range(600))
    # Sums of 40 vertices in another order, over 600 epochs.
    assert max(abs(a["loss"] - b["loss"]) for a, b in zip(one, other, strict=True)) < 1e-8


def wait_for_ranks(job: subprocess.Popen, count: int, known: set[int], ready) -> list[int]:
    """So many ranks that are not those known, once `ready` is so."""
    deadline = time.monotonic() + 900
    while not ready() or len(found := [pid for pid in ranks_below(job.pid) if pid not in known]) < count:
        assert time.monotonic() < deadline and job.poll() is None
        time.sleep(0.02)
    return found
