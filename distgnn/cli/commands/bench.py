"""`distgnn bench`: algorithms side by side, on one partition folder or on several (scaling)."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.display import check_place, print_columns, write_json
from distgnn.cli.options import Only, Threads, with_options
from distgnn.config import ModelConfig, TrainConfig
from distgnn.system.jobs.restarts import without
from distgnn.system.launch import safe_path
from distgnn.system.units import human_bytes, human_seconds, human_share

Column = Callable[[dict[str, Any]], str]
RANKS: dict[str, Column] = {
    "ranks": lambda row: f"{row['ranks']} × {row['threads']}",
    "algorithm": lambda row: row["name"],
}
WAITS = ("_min", "", "_max")
COLUMNS = RANKS | {
    "update": lambda row: row["update"],
    "epoch": lambda row: human_seconds(row["epoch_seconds_median"]),
    "± iqr": lambda row: human_seconds(row["epoch_seconds_iqr"]),
    "aggregate": lambda row: human_seconds(row["aggregate_seconds"]),
    "dense": lambda row: human_seconds(row["dense_seconds"]),
    "pack": lambda row: human_seconds(row["pack_seconds"]),
    "all-reduce": lambda row: human_seconds(row["all_reduce_seconds"]),
    "wait min/mean/max": lambda row: " / ".join(f"{1000 * row[f'wait_seconds{end}']:.3g}" for end in WAITS) + " ms",
    "sent/epoch": lambda row: human_bytes(row["sent_bytes_per_epoch"]),
    "buffers": lambda row: human_bytes(row["exchange_bytes"]),
    "× exact": lambda row: f"{row['speedup_vs_exact']:.2f}",
    "× paper": lambda row: f"{row['speedup_vs_paper']:.2f}",
    "metric": lambda row: human_share(row["final_metric"]),
}
SCALING_COLUMNS = RANKS | {
    "arcs": lambda row: f"{row['num_arcs']:,}",
    "replication": lambda row: f"{row['replication_factor']:.3f}",
    "epoch": lambda row: human_seconds(row["epoch_seconds_median"]),
    "speed-up": lambda row: f"{row['speedup_vs_first']:.2f}",
    "efficiency": lambda row: human_share(row["efficiency"]),
    "sent/epoch": lambda row: human_bytes(row["sent_bytes_per_epoch"]),
    "largest rank": lambda row: human_bytes(row["max_rank_sent_bytes"]),
}


@with_options
def bench(
    parts: Annotated[list[str], typer.Argument(help="Partition folders; several of one graph show scaling.")],
    sizes: Annotated[ModelConfig, Only("name", "num_layers", "hidden_feats", "norm")],
    config: Annotated[TrainConfig, Only("epochs", "lr", "seed", eval_every=10)],
    algorithms: str = typer.Option(
        "cd-0,cd-5,cd-5/int8,0c",
        help="Names, with words: /copies /int8 /late-row-average=0.95 /paper-rule /suppressed.",
    ),
    rounds: int = typer.Option(4, help="Turns of 3 epochs that each algorithm gets."),
    accuracy: bool = typer.Option(False, help="Train --epochs epochs and report final metric and curve."),
    threads: Threads = None,
    out: str = typer.Option("bench.json", help="File to write, JSON."),
    figures: str | None = typer.Option(None, help="Folder for figures (PNG, SVG): time by phase, accuracy curves."),
) -> None:
    """Measure what each algorithm costs and buys, side by side in one run; writes bench.json."""
    from distgnn.bench.contenders import parse_contenders
    from distgnn.bench.figures import describe_cut, with_scaling
    from distgnn.cli.ranks import checked_together, run_on_ranks
    from distgnn.errors import InputError
    from distgnn.partition import read_manifest
    from distgnn.system.processor import machine

    with checked_together():
        config.check()
        sizes.check()
        if rounds < 1:
            raise InputError(f"rounds is {rounds}: expected at least 1")
        contenders = parse_contenders(algorithms)
        manifests = [read_manifest(folder) for folder in parts]
        check_place(out)
        if figures is not None and Path(figures).exists() and not Path(figures).is_dir():
            raise InputError(f"cannot write figures: {figures} is a file")
    if len(parts) > 1:
        rows = with_scaling(_one_job_per_folder(parts, sys.argv[1:], out))
    else:
        run_on_ranks(manifests[0]["num_parts"], threads)
        from mpi4py import MPI

        from distgnn.bench.training import run

        found = run(parts[0], contenders, sizes, config, rounds, accuracy)
        rows = [describe_cut(row, manifests[0]) for row in found]
        if MPI.COMM_WORLD.rank != 0:
            return
    report = {"machine": machine(), "graph": manifests[0]["name"], "command": sys.argv[1:], "rows": rows}
    write_json(out, report)
    if figures is not None:
        from distgnn.bench.figures import draw

        draw(report, Path(figures))
    title = f"{manifests[0]['name']}, {sizes.name} {sizes.num_layers} × {sizes.hidden_feats}"
    tables = {title: COLUMNS}
    if len(parts) > 1:
        tables["Scaling, against the first folder"] = SCALING_COLUMNS
    for name, columns in tables.items():
        print_columns(name, list(columns), [[cell(row) for cell in columns.values()] for row in rows])
    print("× exact and × paper: how many times as fast as cd-0 and as the paper's form an epoch is")


def _one_job_per_folder(parts: list[str], argv: list[str], out: str) -> list[dict]:
    """The rows of the same command for each folder, one after the other; figures are drawn once, of all."""
    options = [word for word in without("--figures", argv[1:]) if word not in parts]
    rows = []
    for folder in parts:
        one = f"{out}.part.json"
        command = [sys.executable, "-m", "distgnn.cli", "bench", folder, *options, "--out", one]
        done = subprocess.run(command, env=os.environ | safe_path(), stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise typer.Exit(done.returncode)
        rows += json.loads(Path(one).read_text())["rows"]
        Path(one).unlink()
    return rows
