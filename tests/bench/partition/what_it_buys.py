"""What a cut buys: epoch, wait, bytes and memory of training on the same graph, cut by several methods.

    python tests/bench/partition/what_it_buys.py WORK ogbn-arxiv --ranks 4,8 --prepare
    python tests/bench/partition/what_it_buys.py WORK ogbn-arxiv --ranks 4,8

`--prepare` cuts (once, into WORK), the second call trains: for each number of ranks the cuts in turn, `--rounds`
times over, each in a job of its own, so that peak memory is its own too. With more ranks than cores ranks take turns:
then an epoch is the work of all of them, and a rank that has too much of it costs less than it would with a core for
each. `--prices FILE` (of `distgnn calibrate`) adds the predicted epoch, which has a core for each.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from distgnn.datasets import load_graph
from distgnn.partition import describe

UNCOUNTED_EPOCHS = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("graph")
    parser.add_argument("--ranks", default="4,8")
    parser.add_argument("--methods", default="libra,hdrf,metis,cmr")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--hidden-feats", default="64")
    parser.add_argument("--direction", default="both")
    parser.add_argument("--prices")
    parser.add_argument("--prepare", action="store_true")
    args = parser.parse_args()
    name = args.graph.split(":")[0].replace("/", "-")
    counts, methods = [int(count) for count in args.ranks.split(",")], args.methods.split(",")
    for ranks in counts:
        folders = {method: args.work / f"{name}-{ranks}-{method}" for method in methods}
        if args.prepare:
            prepare(args, name, ranks, folders)
        else:
            train(args, name, ranks, folders)


def distgnn(*words):
    command = [sys.executable, "-m", "distgnn.cli", *map(str, words)]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")


def prepare(args, name, ranks, folders):
    args.work.mkdir(parents=True, exist_ok=True)
    source = args.graph
    if ":" in source:  # generated once, read each time
        source = args.work / name
        if not source.is_dir():
            load_graph(args.graph).save(source)
    for method, folder in folders.items():
        if folder.is_dir():
            continue
        words = ["--method", method]
        words += ["--prices", args.prices] if args.prices else []
        distgnn("partition", source, "--parts", ranks, "--out", folder, "--direction", args.direction, *words)
        facts = describe(folder)
        balances = ", ".join(f"{load} {facts['balances'][load]:.2f}" for load in ("arcs", "owned", "exchanged"))
        about = f"{facts['replication_factor']:.3f} copies, {facts['exchange_rows']:,} rows; largest / mean: {balances}"
        print(f"{folder.name}: {about}; cut and written in {facts['seconds']:.1f} s", flush=True)


def train(args, name, ranks, folders):
    records = {method: [] for method in folders}
    memory = {method: [] for method in folders}
    words = ["--epochs", args.epochs, "--eval-every", args.epochs, "--hidden-feats", args.hidden_feats]
    for _ in range(args.rounds):
        for method, folder in folders.items():
            run = args.work / f"run-{folder.name}"
            distgnn("train", folder, *words, "--threads", 1, "--run-dir", run, "--overwrite", "--quiet")
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            records[method] += lines[UNCOUNTED_EPOCHS:]
            memory[method].append(max(json.loads((run / "summary.json").read_text())["peak_rss_bytes"]))
    for method, folder in folders.items():
        every = records[method]
        names = [name for name, value in every[0].items() if isinstance(value, float)]
        median = {name: statistics.median(record[name] for record in every) for name in names}
        spread = statistics.quantiles([record["seconds"] for record in every], n=4)
        facts = describe(folder, args.prices)
        predicted = f", predicted {1000 * facts['predicted_epoch']['seconds']:.0f} ms" if args.prices else ""
        print(
            f"{name:12} {ranks} ranks {method:6} epoch {1000 * spread[1]:.0f} ms ({1000 * spread[0]:.0f} to "
            f"{1000 * spread[2]:.0f}), aggregation {1000 * median['aggregate_seconds']:.0f} on the slowest, wait "
            f"{1000 * median['wait_seconds_mean']:.0f} (longest {1000 * median['wait_seconds']:.0f}), "
            f"{every[-1]['sent_bytes'] / 1e6:.1f} MB sent, {max(memory[method]) / 1e6:.0f} MB peak of a rank"
            f"{predicted}; {len(every)} epochs",
            flush=True,
        )


if __name__ == "__main__":
    main()
