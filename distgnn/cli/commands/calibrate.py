"""`distgnn calibrate`: how fast each rank is (`--capacities` of a cut in proportion)."""

import json

import typer

from distgnn.cli.display import print_columns
from distgnn.cli.options import AsJson, Threads


def calibrate(
    ranks: int = typer.Option(1, help="Ranks to start where none were started."),
    seconds: float = typer.Option(3.0, help="How long each rank works."),
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Measure the ranks it is given, all at the same time, as they would train; prints --capacities for partition."""
    from distgnn.cli.ranks import run_on_ranks
    from distgnn.errors import InputError, on_all_ranks

    if not 0 < seconds <= 600:
        raise on_all_ranks(InputError(f"seconds is {seconds}: expected more than 0 and at most 600"))
    run_on_ranks(ranks, threads)
    from distgnn.bench.speeds import measure_speeds
    from distgnn.system.launch import import_mpi

    comm = import_mpi().COMM_WORLD
    rows = measure_speeds(comm, seconds)
    if comm.rank:
        return
    capacities = ",".join(f"{row['capacity']:.2f}" for row in rows)
    if as_json:
        print(json.dumps({"capacities": capacities, "ranks": rows}, indent=1))
        return
    cells = [
        [
            *(str(row[key]) for key in ("rank", "host", "threads")),
            f"{row['rounds_per_second']:.1f}",
            f"{row['capacity']:.2f}",
        ]
        for row in rows
    ]
    print_columns("Speed of ranks", ["rank", "host", "threads", "rounds/s", "speed"], cells)
    print(f"distgnn partition … --parts {len(rows)} --capacities {capacities}")
