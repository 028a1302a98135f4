"""`distgnn calibrate`: how fast each rank is, and the `--capacities` for a cut in proportion."""

import json
import sys

import typer

from distgnn.cli.display import print_columns


def register(app: typer.Typer) -> None:
    app.command()(calibrate)


def calibrate(
    ranks: int = typer.Option(1, help="Ranks to start where none were started."),
    seconds: float = typer.Option(3.0, help="How long each rank works."),
    threads: int | None = typer.Option(None, help="Threads per rank [default: cores / ranks]."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
) -> None:
    """Measure the ranks it is given, all at the same time, as they would train; prints --capacities for partition."""
    from distgnn.cli.ranks import run_on_ranks
    from distgnn.errors import InputError, on_all_ranks

    if not 0 < seconds <= 600:
        raise on_all_ranks(InputError(f"seconds is {seconds}: expected more than 0 and at most 600"))
    code = run_on_ranks(sys.argv[1:], ranks, threads)
    if code is not None:
        raise typer.Exit(code)
    from distgnn.bench.speed import measure_speeds
    from distgnn.launch import import_mpi

    comm = import_mpi().COMM_WORLD
    rows = measure_speeds(comm, seconds)
    if comm.rank:
        return
    capacities = ",".join(f"{row['capacity']:.2f}" for row in rows)
    if as_json:
        print(json.dumps({"capacities": capacities, "ranks": rows}, indent=1))
        return
    columns = ["rank", "host", "threads", "rounds/s", "speed"]
    cells = [
        [
            str(row["rank"]),
            row["host"],
            str(row["threads"]),
            f"{row['rounds_per_second']:.1f}",
            f"{row['capacity']:.2f}",
        ]
        for row in rows
    ]
    print_columns("Speed of ranks", columns, cells)
    print(f"distgnn partition … --parts {len(rows)} --capacities {capacities}")
