"""SIGKILL at every step of writing a partition folder: afterwards there is the old one, whole, or the new one, whole.

    python tests/bench/faults/kill_partition.py WORK [--points 300]

Each point is a child of this process that cuts a small graph, into a new place or over an old folder, and kills itself
at the n-th call of a function that touches the disk, before or after it, or in the middle of writing a block.
"""

import argparse
import collections
import os
import random
import shutil
import signal
from pathlib import Path

import numpy as np

from distgnn.datasets import GraphData
from distgnn.partition import load_part, partition_graph, read_manifest

CALLS = ("os.fsync", "pathlib.Path.mkdir", "pathlib.Path.rename", "shutil.rmtree", "write", "exchange")


def graph() -> GraphData:
    rng = np.random.default_rng(0)
    feats = rng.standard_normal((60, 4)).astype(np.float32)
    fields = {"feats": feats, "labels": rng.integers(0, 3, 60), "train": np.arange(30)}
    return GraphData.from_arrays(rng.integers(0, 60, (200, 2)), 60, directed=False, name="g", **fields)


def child(out: Path, seed: int, call: str, calls: int, after: bool) -> None:
    """Cut over `out`, and die at the given call."""
    import pathlib

    from distgnn.partition.folder import writer
    from distgnn.system import atomic

    holder, name = {
        "os.fsync": (os, "fsync"),
        "pathlib.Path.mkdir": (pathlib.Path, "mkdir"),
        "pathlib.Path.rename": (pathlib.Path, "rename"),
        "shutil.rmtree": (shutil, "rmtree"),
        "write": (writer, "_write_blocks"),
        "exchange": (atomic, "_exchange"),
    }[call]
    original, left = getattr(holder, name), calls

    def deadly(*args, **kwargs):
        nonlocal left
        left -= 1
        if left == 0 and not after:
            if call == "write":
                args[0].write_bytes(b"\x93NUMPY half of a file")
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(holder, name, deadly)
    partition_graph(graph(), 2, out, method="random", seed=seed, overwrite=True)


def whole(folder: Path) -> int:
    """Check everything in a partition folder; returns the seed it was cut with."""
    manifest = read_manifest(folder)
    for part_id in range(manifest["num_parts"]):
        load_part(folder, part_id)
    return manifest["seed"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--points", type=int, default=300)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    counts: collections.Counter = collections.Counter()
    for point in range(args.points):
        rng = random.Random(point)
        out = args.work / "parts"
        shutil.rmtree(out, ignore_errors=True)
        fresh = rng.random() < 0.3
        if not fresh:
            partition_graph(graph(), 2, out, method="random", seed=1)
        call = rng.choice(CALLS)
        calls, after = rng.randint(1, 50 if call in ("os.fsync", "write") else 3), rng.random() < 0.5
        pid = os.fork()
        if pid == 0:
            child(out, 2, call, calls, after)
            os._exit(0)
        killed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        if fresh and not out.exists():
            assert killed
            found = "nothing there"
        else:
            found = {1: "the old one, whole", 2: "the new one, whole"}[whole(out)]
            assert killed or whole(out) == 2
        counts[f"{'killed' if killed else 'finished'} ({'new place' if fresh else 'over an old one'}): {found}"] += 1
        for stray in args.work.glob(".parts.*"):
            counts["hidden folders left to be removed"] += 1
            shutil.rmtree(stray)
    for name, count in sorted(counts.items()):
        print(f"{count:6d}  {name}")


if __name__ == "__main__":
    main()
