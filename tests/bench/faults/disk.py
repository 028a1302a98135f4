"""Disks that are full, or slow to sync, while checkpoints are written.

    python tests/bench/faults/disk.py WORK        (root: it mounts a tmpfs of 3 MB below WORK)

Full: training on two ranks writes a checkpoint every epoch to a small disk that another file fills. The run must end
with exit code 2 and one line, an older checkpoint must read whole, and with room again the run must go on to the losses
of a run that nothing disturbed. Slow: each fsync of every rank takes a second; nothing may change but the time.
Exit code 1 where anything of this is not so.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from job import Job, end_all, end_on_signals, results

SLOW = """
import os, time
fsync = os.fsync
def slow(descriptor):
    time.sleep(1)
    fsync(descriptor)
os.fsync = slow
"""


def words(work: Path, run: Path, epochs: int, every: int) -> list:
    train = ["train", work / "parts", "--run-dir", run, "--epochs", epochs, "--hidden-feats", 32, "--quiet"]
    return [*train, "--checkpoint-every", every, "--timeout", 60, "--threads", 1, "--eval-every", 50]


def finish(job: Job) -> int:
    code = job.launcher.wait(900)
    time.sleep(0.2)
    return code


def full(work: Path, disk: Path) -> list[str]:
    """What is not as it should be when the disk is full in the middle of a run."""
    whole, run = work / "whole", disk / "run"
    assert finish(Job(words(work, whole, 60, 1), whole)) == 0
    job = Job(words(work, run, 60, 1), run)
    while job.epochs() < 10 and not job.over():
        time.sleep(0.01)
    with open(disk / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while ballast.write(bytes(1 << 12)):
            pass
    code, said = finish(job), [line for _, line in job.said]
    print(f"full disk: exit {code} after {job.epochs()} epochs: {said[-1] if said else ''}")
    found = [] if code == 2 and len(said) == 1 and "No space left" in said[0] else [f"full disk: exit {code}, {said}"]
    from distgnn.train.checkpoint import files

    newest = files.find_checkpoints(run)[0]
    state = files.read_state(newest)
    for name in state["files"]:
        files.read_file(newest, state, name)
    (disk / "ballast").unlink()
    code = finish(Job([*words(work, run, 60, 1), "--resume"], run))
    same = code == 0 and results(run) == results(whole)
    print(f"with room again: {newest.name} read whole, resumed, {'bit-identical' if same else 'NOT the same'}")
    return found + ([] if same else ["resumed to other losses or weights"])


def slow(work: Path) -> list[str]:
    """What is not as it should be when each fsync takes a second."""
    folder, run, whole = work / "site", work / "slow", work / "whole-slow"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SLOW)
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    assert finish(Job(words(work, whole, 20, 10), whole)) == 0
    began = time.monotonic()
    code = finish(Job(words(work, run, 20, 10), run, variables={"PYTHONPATH": paths}))
    same = code == 0 and results(run) == results(whole)
    print(
        f"fsync of 1 s: exit {code} after {time.monotonic() - began:.0f} s, {'same losses' if same else 'NOT the same'}"
    )
    return [] if same else ["slow fsync: not the same"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    work = parser.parse_args().work.resolve()
    end_on_signals()
    from distgnn.partition import partition_graph

    shutil.rmtree(work, ignore_errors=True)
    disk = work / "disk"
    disk.mkdir(parents=True)
    partition_graph("communities:nodes=300,communities=4,feats=8,classes=4", 2, work / "parts", method="libra")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "small", str(disk)], check=True)
    try:
        found = full(work, disk)
    finally:
        end_all()
        subprocess.run(["umount", str(disk)], check=True)
    found += slow(work)
    for text in found:
        print(f"FINDING {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
