"""Two ranks of different speed: an equal cut against one in proportion to what `distgnn calibrate` measures.

    python tests/bench/unequal/waiting.py WORK [--rounds 3] [--epochs 12]

Each rank is bound to one core; a busy process shares the second core, so that rank 1 has about half of it. The two cuts
are trained in turn; needs two idle cores, `taskset`, and an mpiexec that takes `-n 1 A : -n 1 B`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from distgnn.system.launch import find_mpiexec, rank_environment

WAITS = ("wait_seconds", "wait_seconds_mean", "wait_seconds_min")


def on_two_cores(*words: object) -> subprocess.CompletedProcess:
    """Run `distgnn WORDS` on two ranks, rank 0 on core 0 and rank 1 on core 1."""
    program = [sys.executable, "-m", "distgnn.cli", *map(str, words)]
    command = [find_mpiexec(), "-n", "1", "taskset", "-c", "0", *program]
    command += [":", "-n", "1", "taskset", "-c", "1", *program]
    environment = os.environ | rank_environment(2, 1, "mpich")
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--graph", default="communities:nodes=40000,communities=400,feats=64,classes=10")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    burner = subprocess.Popen(["taskset", "-c", "1", sys.executable, "-c", "while True: pass"])
    try:
        measured = json.loads(on_two_cores("calibrate", "--seconds", 5, "--json").stdout)
        print(f"calibrate: --capacities {measured['capacities']}", flush=True)
        cuts = {"equal": [], "in proportion": ["--capacities", measured["capacities"]]}
        for name, words in cuts.items():
            out = args.work / name.replace(" ", "-")
            command = [sys.executable, "-m", "distgnn.cli", "partition", args.graph, "--parts", "2", "--out", str(out)]
            subprocess.run([*command, "--quiet", "--overwrite", *words], check=True)
        found: dict[str, list[dict]] = {name: [] for name in cuts}
        for turn in range(args.rounds):
            for name in cuts:
                run = args.work / f"run-{name.replace(' ', '-')}-{turn}"
                words = ["--epochs", args.epochs, "--eval-every", args.epochs, "--hidden-feats", 128]
                parts = args.work / name.replace(" ", "-")
                on_two_cores("train", parts, *words, "--run-dir", run, "--overwrite", "--quiet")
                lines = (run / "metrics.jsonl").read_text().splitlines()[1:]
                records = [json.loads(line) for line in lines]
                found[name] += records
        for name, records in found.items():
            arcs = [
                p["arcs"]
                for p in json.loads((args.work / name.replace(" ", "-") / "partition.json").read_text())["parts"]
            ]
            median = {key: statistics.median(record[key] for record in records) for key in ("seconds", *WAITS)}
            waits = " / ".join(f"{1000 * median[key]:.0f}" for key in WAITS)
            share = 100 * median["wait_seconds_mean"] / median["seconds"]
            print(
                f"{name}: arcs {arcs}, epoch {1000 * median['seconds']:.0f} ms, a rank waits {waits} ms "
                f"(longest, mean {share:.0f} %, least), medians of {len(records)} epochs in {args.rounds} rounds",
                flush=True,
            )
    finally:
        burner.kill()


if __name__ == "__main__":
    main()
