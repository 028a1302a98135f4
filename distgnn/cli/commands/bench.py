"""`distgnn bench`: algorithms side by side, on one partition folder or on several (scaling)."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.display import print_columns
from distgnn.cli.options import Only, Threads, with_options
from distgnn.config import ModelConfig, TrainConfig
from distgnn.system.units import human_bytes, human_seconds, human_share

COLUMNS = [
    "ranks",
    "algorithm",
    "update",
    "epoch",
    "± iqr",
    "aggregate",
    "dense",
    "pack",
    "all-reduce",
    "wait min/mean/max",
    "sent/epoch",
    "buffers",
    "× exact",
    "× paper",
    "metric",
]
SCALING_COLUMNS = [
    "ranks",
    "algorithm",
    "arcs",
    "replication",
    "epoch",
    "speed-up",
    "efficiency",
    "sent/epoch",
    "largest rank",
]


@with_options
def bench(
    parts: Annotated[list[str], typer.Argument(help="Partition folders; several of one graph show scaling.")],
    sizes: Annotated[ModelConfig, Only("name", "num_layers", "hidden_feats", "norm")],
    config: Annotated[TrainConfig, Only("epochs", "lr", "seed", eval_every=10)],
    algorithms: Annotated[
        str,
        typer.Option(help="Names, with words: /copies /int8 /late-row-average=0.95 /paper-rule /suppressed."),
    ] = "cd-0,cd-5,cd-5/int8,0c",
    rounds: Annotated[int, typer.Option(help="Turns of 3 epochs that each algorithm gets.")] = 4,
    accuracy: Annotated[bool, typer.Option(help="Train --epochs epochs and report final metric and curve.")] = False,
    threads: Threads = None,
    out: Annotated[str, typer.Option(help="File to write.")] = "bench.json",
    figures: Annotated[
        str | None, typer.Option(help="Folder for figures (PNG, SVG): time by phase, accuracy curves.")
    ] = None,
) -> None:
    """Measure what each algorithm costs and buys, side by side in one run; writes bench.json."""
    from distgnn.bench.contenders import parse_contenders
    from distgnn.bench.scaling import with_scaling
    from distgnn.cli.ranks import checked_together
    from distgnn.errors import InputError
    from distgnn.partition import read_manifest

    with checked_together():
        config.check()
        sizes.check()
        if rounds < 1:
            raise InputError(f"rounds is {rounds}: expected at least 1")
        contenders = parse_contenders(algorithms)
        manifests = [read_manifest(folder) for folder in parts]
        _check_outputs(out, figures)
    if len(parts) > 1:
        rows = with_scaling(_one_job_per_folder(parts, sys.argv[1:], out))
    else:
        rows = _on_ranks(parts[0], manifests[0], threads, (contenders, sizes, config, rounds, accuracy))
        if _rank() != 0:
            return
    report = _write(rows, manifests[0]["name"], out)
    if figures is not None:
        from distgnn.bench.figures import draw

        draw(report, Path(figures))
    title = f"{manifests[0]['name']}, {sizes.name} {sizes.num_layers} × {sizes.hidden_feats}"
    print_columns(title, COLUMNS, [_cells(row) for row in rows])
    if len(parts) > 1:
        print_columns("Scaling, against the first folder", SCALING_COLUMNS, [_scaling_cells(row) for row in rows])


def _check_outputs(out: str, figures: str | None) -> None:
    """Raise InputError where the file or the figures cannot be written."""
    from distgnn.cli.output_files import check_place
    from distgnn.errors import InputError

    check_place(out)
    if figures is not None and Path(figures).exists() and not Path(figures).is_dir():
        raise InputError(f"cannot write figures: {figures} is a file")


def _on_ranks(folder: str, manifest: dict, threads: int | None, what: tuple[Any, ...]) -> list[dict]:
    """Rows of one folder: on a rank; elsewhere run this command on ranks, and exit as they did."""
    from distgnn.bench.scaling import describe_cut
    from distgnn.cli.ranks import run_on_ranks

    code = run_on_ranks(sys.argv[1:], manifest["num_parts"], threads)
    if code is not None:
        raise typer.Exit(code)
    from distgnn.bench.training import run

    return [describe_cut(row, manifest) for row in run(folder, *what)]


def _write(rows: list[dict], graph: str, out: str) -> dict:
    """Write bench.json; returns what it holds."""
    from distgnn.cli.output_files import write_json

    report = {"machine": machine(), "graph": graph, "command": sys.argv[1:], "rows": rows}
    write_json(out, report)
    return report


def _one_job_per_folder(parts: list[str], argv: list[str], out: str) -> list[dict]:
    """Run the same command for each folder, one after the other, and collect the rows."""
    options = [word for word in _without("--figures", argv[1:]) if word not in parts]
    rows = []
    for folder in parts:
        one = f"{out}.part"
        command = [sys.executable, "-m", "distgnn.cli", "bench", folder, *options, "--out", one]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise typer.Exit(done.returncode)
        rows += json.loads(Path(one).read_text())["rows"]
        Path(one).unlink()
    return rows


def _without(option: str, words: list[str]) -> list[str]:
    """A command line without an option and its value: the figures are drawn once, of all folders."""
    if option in words:
        place = words.index(option)
        words = words[:place] + words[place + 2 :]
    return [word for word in words if not word.startswith(f"{option}=")]


def _rank() -> int:
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank


def machine() -> dict[str, Any]:
    """What a reader needs to judge the numbers."""
    from distgnn.system.processor import processor

    return {"cpu": processor(), "cores": os.cpu_count(), "system": platform.platform()}


def _cells(row: dict) -> list[str]:
    spent = ("aggregate_seconds", "dense_seconds", "pack_seconds", "all_reduce_seconds")
    waits = (row["wait_seconds_min"], row["wait_seconds"], row["wait_seconds_max"])
    return [
        f"{row['ranks']} × {row['threads']}",
        row["name"],
        row["update"],
        human_seconds(row["epoch_seconds_median"]),
        human_seconds(row["epoch_seconds_iqr"]),
        *(human_seconds(row[name]) for name in spent),
        " / ".join(f"{1000 * seconds:.3g}" for seconds in waits) + " ms",
        human_bytes(row["sent_bytes_per_epoch"]),
        human_bytes(row["exchange_bytes"]),
        f"{row['speedup_vs_exact']:.2f}",
        f"{row['speedup_vs_paper']:.2f}",
        human_share(row["final_metric"]),
    ]


def _scaling_cells(row: dict) -> list[str]:
    return [
        f"{row['ranks']} × {row['threads']}",
        row["name"],
        f"{row['num_arcs']:,}",
        f"{row['replication_factor']:.3f}",
        human_seconds(row["epoch_seconds_median"]),
        f"{row['speedup_vs_first']:.2f}",
        human_share(row["efficiency"]),
        human_bytes(row["sent_bytes_per_epoch"]),
        human_bytes(row["max_rank_sent_bytes"]),
    ]
