"""`train` as a program that is stopped, resumed, refused: exit codes, one line each, nothing lost."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from process_tree import descendants

from distgnn.train.checkpoint import files as files

SMALL = ("--hidden-feats", 8, "--num-layers", 2, "--epochs", 4, "--eval-every", 2, "--quiet")


def test_options_are_those_of_the_run_unless_given(run, ran, parts, tmp_path):
    folder = tmp_path / "run"
    ran("train", parts, *SMALL, "--lr", 0.02, "--run-dir", folder)
    out = ran("train", parts, "--run-dir", folder, "--resume", "--epochs", 6, "--json")
    assert json.loads(out)["epochs"] == 6
    for words, says in ((["--lr", 0.1], "lr is 0.02 there, 0.1 here"), (["--model", "gcn"], "name is sage there, gcn")):
        code, _, err = run("train", parts, "--run-dir", folder, "--resume", "--quiet", *words)
        assert code == 2
        assert says in err and err.count("\n") == 1
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == list(range(6))


def test_refusals_of_resume(refused, parts, tmp_path):
    refused("train", parts, "--resume", says="--resume needs --run-dir")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    refused("train", parts, "--resume", "--run-dir", tmp_path / "other", says="is not a run folder")


def begun(parts, folder, *words) -> subprocess.Popen:
    """A long run in a process of its own that has written a checkpoint."""
    words = ["train", parts, "--run-dir", folder, "--epochs", 1000000, "--eval-every", 1000, *words]
    command = [sys.executable, "-m", "distgnn.cli", *map(str, words), "--hidden-feats", "8", "--checkpoint-every", "50"]
    job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 600
    while not files.find_checkpoints(folder):
        assert time.monotonic() < deadline and job.poll() is None
        time.sleep(0.05)
    return job


@pytest.mark.slow
def test_trained_on_two_ranks_resumed_on_one_from_a_new_cut(run, ran, trained, two_parts, tmp_path):
    folder = shutil.copytree(trained[1], tmp_path / "run")
    assert run("repartition", two_parts, "--parts", 1, "--out", tmp_path / "one", "--quiet")[0] == 0
    out = ran("train", tmp_path / "one", "--run-dir", folder, "--resume", "--epochs", 6, "--json")
    assert (json.loads(out)["epochs"], json.loads(out)["ranks"]) == (6, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "first"), [((signal.SIGINT,), "launcher"), ((signal.SIGTERM, signal.SIGINT) * 2, "ranks")]
)
def test_a_signal_to_every_process_gives_one_checkpoint_and_one_line(two_parts, tmp_path, numbers, first):
    """As `scancel --full`, systemd and terminals send it, in any order, some of them twice."""
    folder = tmp_path / "run"
    job = begun(two_parts, folder, "--quiet")
    everyone = [job.pid, *descendants(job.pid)]
    for number in numbers:
        for pid in everyone if first == "launcher" else everyone[::-1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    _, err = job.communicate(timeout=900)
    newest = files.find_checkpoints(folder)[0]
    assert job.returncode - 128 in numbers
    assert err.count("\n") == 1 and f"after {files.epochs_of(newest)} epochs; {folder} has a checkpoint" in err, err
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == files.epochs_of(newest)
    assert not (folder / "summary.json").exists()
