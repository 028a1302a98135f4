"""Accuracy at the end of training under every algorithm, on the ranks it is given.

    mpiexec -n 4 python tests/bench/delayed/accuracy.py parts --out runs.jsonl --seeds 3 --epochs 100 \
        --algorithms cd-0,cd-5,cd-5/int8
    python tests/bench/delayed/accuracy.py --table runs.jsonl

Names are those of `distgnn bench`. Runs that are in the file already are skipped, and no run is started after
`--minutes`: call it again to go on. Same epochs, same learning rate, not retuned. A line has the test metric at the
best validation epoch and at the end.
"""

import argparse
import json
import statistics
import time
from pathlib import Path


def main() -> None:
    """Train what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="?")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--algorithms", default="cd-0,cd-1,cd-5")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden-feats", type=int, default=256)
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--model", default="sage")
    parser.add_argument("--minutes", type=float, default=4.5)
    options = parser.parse_args()
    if options.table:
        print_table(options.table)
    else:
        train_missing(options)


def train_missing(options: argparse.Namespace) -> None:
    """One line per (algorithm, seed) that the file lacks. Collective: yes."""
    from mpi4py import MPI

    comm, started = MPI.COMM_WORLD, time.monotonic()
    done = {(line["name"], line["seed"]) for line in read(options.out)}
    for seed in range(options.seeds):
        for name in options.algorithms.split(","):
            late = comm.bcast(time.monotonic() - started > 60 * options.minutes, root=0)
            if (name, seed) in done or late:
                continue
            line = one_run(options, name, seed)
            if comm.rank == 0:
                with options.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def one_run(options: argparse.Namespace, name: str, seed: int) -> dict:
    """Train one algorithm from one seed."""
    from distgnn.bench.contenders import Contender
    from distgnn.bench.training import Runner
    from distgnn.config import ModelConfig, TrainConfig

    config = TrainConfig(epochs=options.epochs, eval_every=5, seed=seed, lr=options.lr)
    sizes = ModelConfig(options.model, options.hidden_feats, options.num_layers)
    result = Runner(options.parts, Contender.parse(name), sizes, config).trainer.fit()
    summary, last = result.summary, result.records[-1]
    return {
        "name": name,
        "seed": seed,
        "test_at_best": summary["test_metric"],
        "test_at_end": last["test_metric"],
        "final_loss": summary["final_loss"],
        "sent_bytes_per_epoch": statistics.fmean(record["sent_bytes"] for record in result.records[1:]),
        "epoch_seconds": summary["epoch_seconds_median"],
        "peak_rss_bytes": max(summary["peak_rss_bytes"]),
        "ranks": summary["ranks"],
        "options": {key: str(value) for key, value in vars(options).items() if key not in ("out", "table")},
    }


def read(path: Path) -> list[dict]:
    """The lines of a file, none if it is not there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def print_table(path: Path) -> None:
    """A Markdown row per algorithm: mean ± standard deviation over seeds, in percent, and the difference to cd-0."""
    lines = read(path)
    names = list(dict.fromkeys(line["name"] for line in lines))
    exact = {line["seed"]: line for line in lines if line["name"] == "cd-0"}
    print("| algorithm | seeds | test at the best validation | − cd-0 | test at the end | − cd-0 | bytes per epoch |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        runs = [line for line in lines if line["name"] == name and line["seed"] in exact]
        cells = [name, str(len(runs))]
        for key in ("test_at_best", "test_at_end"):
            values = [100 * run[key] for run in runs]
            std = statistics.stdev(values) if len(values) > 1 else 0.0
            behind = statistics.fmean(100 * (run[key] - exact[run["seed"]][key]) for run in runs)
            cells += [f"{statistics.fmean(values):.2f} ± {std:.2f}", f"{behind:+.2f}"]
        print(
            "| " + " | ".join([*cells, f"{statistics.fmean(run['sent_bytes_per_epoch'] for run in runs):,.0f}"]) + " |"
        )


if __name__ == "__main__":
    main()
