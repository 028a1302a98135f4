"""What a run under cd-r loses when it goes on on another cut: held rows are filled anew by a synchronous epoch.

    python tests/bench/delayed/other_cut.py GRAPH WORK [--ranks 4] [--then 3] [--algorithm cd-5] [--seeds 3]

Three runs of each seed: whole on both cuts, and one that changes in the middle from the first to the second, whose
parts are those of the first, merged. The loss is compared with the whole run of the second cut, epoch by epoch after
the change, beside what the two whole runs differ by: late rows belong to a cut. Ranks of one thread.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = [sys.executable, "-m", "distgnn.cli"]


def main() -> None:
    """Cut, train, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph")
    parser.add_argument("work", type=Path)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--then", type=int, default=3)
    parser.add_argument("--algorithm", default="cd-5")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    first, second = args.work / f"parts-{args.ranks}", args.work / f"parts-{args.then}"
    run("partition", args.graph, "--parts", args.ranks, "--out", first, "--overwrite")
    run("repartition", first, "--parts", args.then, "--out", second, "--merge", "--overwrite")
    half, table = args.epochs // 2, []
    for seed in range(args.seeds):
        common = ("--algorithm", args.algorithm, "--seed", seed, "--threads", 1, "--checkpoint-every", half)
        records = {}
        for name, steps in {
            f"{args.ranks} ranks": [(first, args.epochs)],
            f"{args.then} ranks": [(second, args.epochs)],
            "changed": [(first, half), (second, args.epochs)],
        }.items():
            folder = args.work / f"run-{name.replace(' ', '-')}-{seed}"
            for number, (parts, epochs) in enumerate(steps):
                way = "--resume" if number else "--overwrite"
                run("train", parts, "--run-dir", folder, way, "--epochs", epochs, *common)
            lines = (folder / "metrics.jsonl").read_text().splitlines()
            records[name] = [json.loads(line) for line in lines]
        table.append(compare(seed, half, *records.values()))
    names = list(table[0])
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    for row in table:
        print("| " + " | ".join(f"{value:.4g}" for value in row.values()) + " |")


def compare(seed: int, half: int, first: list[dict], second: list[dict], changed: list[dict]) -> dict[str, float]:
    """A line of the table."""
    losses = [[record["loss"] for record in run] for run in (first, second, changed)]
    cuts = [abs(a - b) for a, b in zip(losses[0][half:], losses[1][half:], strict=True)]
    change = [abs(a - b) for a, b in zip(losses[2][half:], losses[1][half:], strict=True)]
    best = [max(record.get("valid_metric") or 0 for record in run) for run in (first, second, changed)]
    names = ("valid, first cut", "valid, second cut", "valid, changed")
    return {
        "seed": seed,
        "loss at the end, second cut": losses[1][-1],
        "losses differ, cuts": statistics.median(cuts),
        "losses differ, changed": statistics.median(change),
    } | dict(zip(names, best, strict=True))


def run(*words: object) -> None:
    """A command of the program."""
    subprocess.run([*PROGRAM, *map(str, words), "--quiet"], check=True)


if __name__ == "__main__":
    main()
