"""Scaling of graphs too large for several algorithms in one job: every algorithm on every folder in a job of its own.

    python tests/bench/delayed/alone.py parts-2 parts-4 parts-8 [--algorithms cd-0,cd-5/int8,0c,paper] [--epochs 4]

One thread per rank; the first two epochs are not counted. Rows are those of `distgnn bench`, with peak memory of the
largest rank. Speed-up and efficiency are against the first folder.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS = "ranks,algorithm,arcs,replication,epoch,aggregate,dense,wait,MB sent,peak MB,speed-up,efficiency".split(",")


def main() -> None:
    """Run the jobs and print a Markdown row for each; on a rank: train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--algorithms", default="cd-0,cd-5/int8,0c,paper")
    parser.add_argument("--hidden-feats", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, default=None, help="write the rows as JSON")
    parser.add_argument("--on-rank", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.on_rank:
        train(options)
        return
    from distgnn.bench.scaling import with_scaling

    print(
        "| ranks | algorithm | arcs | replication | epoch | aggregate | dense | wait | MB sent | peak MB | speed-up |",
        end="",
    )
    print(" efficiency |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
    rows: list[dict] = []
    for parts in options.parts:
        for name in options.algorithms.split(","):
            rows = with_scaling([*rows, job(options, parts, name)])
            print(line(rows[-1]), flush=True)
            if options.out:
                options.out.write_text(json.dumps(rows, indent=1))


def job(options: argparse.Namespace, parts: str, name: str) -> dict:
    """The row of one algorithm on one folder."""
    from distgnn.bench.scaling import describe_cut
    from distgnn.system.launch import THREAD_VARIABLES, find_mpiexec

    manifest = json.loads((Path(parts) / "partition.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "row.json"
        words = [parts, "--algorithms", name, "--epochs", options.epochs, "--hidden-feats", options.hidden_feats]
        threads = [f"{variable}=1" for variable in (*THREAD_VARIABLES, "DISTGNN_NUM_THREADS")]
        command = [find_mpiexec(), "-n", manifest["num_parts"], "env", *threads, sys.executable, __file__, *words]
        subprocess.run([*map(str, command), "--on-rank", str(out)], check=True)
        return describe_cut(json.loads(out.read_text()), manifest)


def train(options: argparse.Namespace) -> None:
    """Train with one algorithm; rank 0 writes the row. Collective: yes."""
    from distgnn.bench.contenders import Contender
    from distgnn.bench.training import UNCOUNTED_EPOCHS, Runner
    from distgnn.config import ModelConfig, TrainConfig

    sizes = ModelConfig("sage", options.hidden_feats, 3)
    runner = Runner(options.parts[0], Contender.parse(options.algorithms), sizes, TrainConfig())
    runner.train(UNCOUNTED_EPOCHS + options.epochs)
    row = runner.row()
    runner.graph.drain()
    if runner.graph.rank == 0:
        options.on_rank.write_text(json.dumps(row))


def line(row: dict) -> str:
    """A Markdown row."""
    cells = [row["ranks"], row["name"], f"{row['num_arcs']:,}", f"{row['replication_factor']:.3f}"]
    cells += [f"{row[f'{name}_seconds']:.3f}" for name in ("aggregate", "dense", "wait")]
    cells.insert(4, f"{row['epoch_seconds_median']:.3f}")
    cells += [f"{row['sent_bytes_per_epoch'] / 1e6:,.1f}", f"{row['peak_rss_bytes'] / 1e6:,.0f}"]
    cells += [f"{row['speedup_vs_first']:.2f}", f"{row['efficiency']:.2f}"]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
