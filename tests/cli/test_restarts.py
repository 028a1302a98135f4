"""`train --restarts`: a run whose rank was killed has the losses and weights of one that nothing disturbed."""

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
from distgnn.system.processes import descendants
from distgnn.train.checkpoint import files as files


def ranks_below(pid: int) -> list[int]:
    found = []
    for below in descendants(pid):
        words = Path(f"/proc/{below}/environ").read_bytes().split(b"\0")
        found += [below] if any(word.startswith((b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=")) for word in words) else []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["cd-0", "cd-2"])
def test_a_killed_rank_costs_no_bit(two_parts, tmp_path, algorithm):
    words = ["train", two_parts, "--algorithm", algorithm, "--hidden-feats", 4, "--epochs", 120, "--restarts", 2]
    command = [sys.executable, "-m", "distgnn.cli", *map(str, words), "--quiet", "--run-dir"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, str(tmp_path / "whole")], check=True, timeout=200, env=environment)
    folder = tmp_path / "run"
    job = subprocess.Popen([*command, str(folder)], stderr=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + 100
    while not files.find_checkpoints(folder):
        assert time.monotonic() < deadline and job.poll() is None
        time.sleep(0.02)
    os.kill(ranks_below(job.pid)[-1], signal.SIGKILL)
    _, err = job.communicate(timeout=200)
    assert job.returncode == 0, err
    assert "restart 1 of 2 in 1 s from checkpoint/epoch-" in err
    assert results(folder) == results(tmp_path / "whole")


def results(folder: Path) -> tuple:
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    best = (folder / "checkpoint" / "best.safetensors").read_bytes()
    last = (files.find_checkpoints(folder)[0] / "model.safetensors").read_bytes()
    return [(record["epoch"], record["loss"]) for record in records], best, last


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
