"""`distgnn bench-kernels`: our row kernels beside DGL, torch and PyG, in turn in one run."""

import json
from pathlib import Path
from typing import Any

import typer

from distgnn.cli.output_files import write_json
from distgnn.system.regular_file import read_text


def register(app: typer.Typer) -> None:
    app.command(name="bench-kernels")(bench_kernels)


def bench_kernels(
    graphs: str = typer.Option("rmat,dense,communities,arxiv", help="Graphs, comma-separated."),
    widths: str = typer.Option("16,47,100,128,256,602", help="Feature widths, comma-separated."),
    operations: str = typer.Option("sum,weighted,max,softmax,attention,activation", help="Comma-separated."),
    repeats: int = typer.Option(7, help="Turns; the first is not counted."),
    data_root: str | None = typer.Option(None, help="Folder of named datasets (default: DISTGNN_DATA or ./data)."),
    cache: str | None = typer.Option(None, help="Folder that keeps the generated graphs for the next run."),
    threads: int | None = typer.Option(None, help="Threads (default: all cores)."),
    out: str | None = typer.Option(None, help="JSON file, written after each row; rows that it has are kept."),
) -> None:
    """Time the kernels beside DGL 1.1.3, torch.sparse and torch_geometric (where installed)."""
    from rich.console import Console

    from distgnn import kernels
    from distgnn.bench.kernels import machine, run, summary_table, table
    from distgnn.config import num_threads
    from distgnn.errors import InputError

    if repeats < 2:
        raise InputError(f"repeats is {repeats}: expected at least 2, the first is not counted")
    if not all(width.strip().isdigit() and int(width) > 0 for width in widths.split(",")):
        raise InputError(f"widths are {widths!r}: expected positive numbers such as 16,100,256")
    kernels.set_num_threads(threads or num_threads())
    chosen = [name.split(",") for name in (graphs, operations)]
    sizes = [int(width) for width in widths.split(",")]
    rows = _read(out)

    def keep(row: Any) -> None:
        print(row, flush=True)
        rows[row["graph"], row["operation"], row["width"]] = row
        _write(out, machine(), rows)

    run(chosen[0], sizes, chosen[1], repeats, data_root, cache, keep)
    console = Console(width=200)
    console.print(table(rows.values()))
    console.print(summary_table(rows.values()))


def _read(out: str | None) -> dict:
    """Rows of an earlier run by (graph, operation, width)."""
    from distgnn.bench.kernels import summary_table, table
    from distgnn.errors import InputError

    if out is None or not Path(out).exists():
        return {}
    try:
        rows = json.loads(read_text(out))["rows"]
        table(rows), summary_table(rows)  # shown at the end: rows that cannot be are refused before hours of work
        return {(row["graph"], row["operation"], row["width"]): row for row in rows}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"{out} holds no kernel measurements: name another file, or remove it") from error


def _write(out: str | None, machine: dict, rows: dict) -> None:
    if out is not None:
        write_json(out, {"machine": machine, "rows": list(rows.values())})
