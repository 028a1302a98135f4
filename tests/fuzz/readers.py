"""Damaged and hostile files for every reader, as many as asked for.

    python tests/fuzz/readers.py WORK --inputs 100000 [--seed 0] [--seconds 280]

Prints, by kind of folder, how many inputs were tried, read and refused, and every finding (see
fuzzing.py for what is one). Memory is measured for every tenth input: that makes reading slow. WORK
should be in memory (/dev/shm). Counts are kept in WORK/fuzz.json after every thousand: a call goes on where the last
one ended, with other inputs; with another version of the program it begins again. Exits 1 if anything was found.
"""

import argparse
import collections
import faulthandler
import hashlib
import json
import random
import shutil
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "harness"))
from fuzz_targets import SLOW, make_targets
from fuzzing import files_below, try_one


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--only", help="one kind of folder")
    args = parser.parse_args()
    faulthandler.enable()
    began = time.time()
    args.work.mkdir(parents=True, exist_ok=True)
    kept = args.work / "fuzz.json"
    before = json.loads(kept.read_text()) if kept.exists() else {}
    version = program_version()
    counts = collections.Counter(before["counts"] if before.get("version") == version else {})
    shutil.rmtree(args.work / "folders", ignore_errors=True)
    (args.work / "folders").mkdir()
    warnings.simplefilter("ignore")
    every = make_targets(args.work / "folders")
    files = files_below(args.work / "folders")
    targets = [target for target in every if args.only in (None, target.name)]
    turns = [target for target in targets for _ in range(1 if target.name in SLOW else 6)]  # those are slow
    findings, longest, traced = 0, 0.0, False
    done = sum(counts.values())
    while done < args.inputs and time.time() - began < args.seconds:
        target = turns[done % len(turns)]
        rng = random.Random(f"{args.seed}-{done}")
        if not traced and done % 1000 < 100:
            tracemalloc.start(1)
            traced = True
        elif traced and done % 1000 >= 100:
            tracemalloc.stop()
            traced = False
        started = time.perf_counter()
        outcome = try_one(target, rng)
        longest = max(longest, time.perf_counter() - started)
        if outcome.startswith("finding"):
            findings += 1
            print(f"{args.seed}-{done} {target.name}: {outcome[:400]}", flush=True)
            outcome = "finding"
        counts[f"{target.name}: {outcome}"] += 1
        done += 1
        if done % 1000 == 0:
            kept.write_text(json.dumps({"version": version, "counts": counts}))
    strays = files_below(args.work / "folders") - files
    kept.write_text(json.dumps({"version": version, "counts": counts}))
    print(f"{'reader':>15} {'inputs':>8} {'read':>8} {'refused':>8} {'found':>6}")
    for target in targets:
        read, refused, found = (counts[f"{target.name}: {outcome}"] for outcome in ("read", "refused", "finding"))
        print(f"{target.name:>15} {read + refused + found:8d} {read:8d} {refused:8d} {found:6d}")
    wrong = sum(count for name, count in counts.items() if name.endswith("finding"))
    print(f"inputs: {done}; clean: {done - wrong}; findings now: {findings}; longest read: {longest:.2f} s")
    print(f"files written by readers: {len(strays)}; version {version}")
    sys.exit(bool(wrong or strays))


def program_version() -> str:
    """A hash of the program's files: counts of two versions are not added up."""
    digest = hashlib.sha256()
    for folder in ("distgnn", "datasets", "partition", "kernels"):
        for path in sorted((Path(__file__).parents[3] / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    main()
