"""`train --restarts`: a run whose ranks were killed has the losses of one that nothing disturbed.

That a run that goes on from a checkpoint has the same bits is tested in tests/train/checkpoint.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from distgnn.cli.commands.train import _with_checkpoints
from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.errors import InputError
from distgnn.system.jobs.job_cleanup import descendants
from distgnn.train.checkpoint import files as files


def ranks_below(pid: int) -> list[int]:
    found = []
    for below in descendants(pid):
        try:
            words = Path(f"/proc/{below}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found += [below] if any(word.startswith((b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=")) for word in words) else []
    return found


@pytest.mark.slow
def test_ranks_that_die_twice_are_gone_on_without(run, parts, two_parts, tmp_path):
    words = ["--hidden-feats", 4, "--epochs", 600, "--dtype", "float64", "--dropout", "0.5", "--quiet"]
    words += ["--checkpoint-every", 20]  # dropout masks belong to vertices, not to ranks
    code, _, err = run("train", parts, *words, "--run-dir", tmp_path / "whole")
    assert code == 0, err
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
    one, other = losses(folder), losses(tmp_path / "whole")
    assert [epoch for epoch, _ in one] == [epoch for epoch, _ in other] == list(range(600))
    # Sums of 40 vertices in another order, over 600 epochs.
    assert max(abs(a - b) for (_, a), (_, b) in zip(one, other, strict=True)) < 1e-8


def wait_for_ranks(job: subprocess.Popen, count: int, known: set[int], ready) -> list[int]:
    """So many ranks that are not those known, once `ready` is so."""
    deadline = time.monotonic() + 900
    while not ready() or len(found := [pid for pid in ranks_below(job.pid) if pid not in known]) < count:
        assert time.monotonic() < deadline and job.poll() is None
        time.sleep(0.02)
    return found


def losses(folder: Path) -> list[tuple[int, float]]:
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(record["epoch"], record["loss"]) for record in records]


def test_wrong_restarts_are_refused(refused, parts):
    refused("train", parts, "--restarts", "-1", says="restarts is -1: expected at least 0")
    refused("launch", "--hosts", "none", "--restarts", "1", "--", "train", "p", says="no hosts can be read")


def test_only_ranks_of_our_launcher_are_started_again(monkeypatch):
    settings = Settings(TrainConfig(), ModelConfig(), RunConfig(), Schedule())
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.delenv("DISTGNN_LAUNCHED", raising=False)
    with pytest.raises(InputError, match="--restarts is for ranks that distgnn starts"):
        _with_checkpoints(settings)
    monkeypatch.setenv("DISTGNN_LAUNCHED", "1")
    assert _with_checkpoints(settings).train.checkpoint_every == 10
