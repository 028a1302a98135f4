"""`distgnn bench` and `distgnn calibrate`: what avoiding communication costs and buys; how fast each rank is."""

import json
import sys
from typing import Annotated, Any

import typer

from distgnn.cli.display import print_columns
from distgnn.cli.options import AsJson, Only, Quiet, Threads, with_options
from distgnn.config import ModelConfig, RunConfig, TrainConfig

PANEL = "Study"


def _option(default: Any, help: str) -> Any:
    return typer.Option(default, help=help, rich_help_panel=PANEL)


@with_options
def bench(
    parts: Annotated[list[str], typer.Argument(help="Partition folders of one graph, each for other ranks.")],
    sizes: Annotated[ModelConfig, Only("name", "num_layers", "hidden_feats", "norm", "dropout")],
    config: Annotated[TrainConfig, Only("epochs", "lr", "seed", eval_every=10)],
    run: Annotated[RunConfig, Only("runs")],
    algorithms: str = _option(
        "cd-0,cd-5,cd-5/int8", "Names, with words: /int8 /late-row-average=0.95 /suppressed; and of extras."
    ),
    network: str = _option("here", "here is measured; others are predicted, as here,1gbit,10gbit."),
    rounds: int = _option(4, "Turns of 3 epochs that each algorithm gets."),
    accuracy: bool = _option(False, "Train --epochs epochs with each seed, too: metric, curves, memory."),
    tolerance: float = _option(0.01, "The target metric is cd-0's final one less this."),
    emulate: bool = _option(False, "Measure on other networks, too: emulated here, by an extra, where you may."),
    threads: Threads = None,
    hosts: str | None = typer.Option(None, help="File of machines, as of launch, in place of this one."),
    out: str | None = _option(
        None, "Folder for tables, figures and what is finished; the same command goes on there after a stop."
    ),
    quiet: Quiet = False,
) -> None:
    """Measure what each algorithm costs and buys, side by side in one run: time, bytes, accuracy, memory."""
    from distgnn.bench.contenders import listed, parse_contenders
    from distgnn.bench.result import check_folder
    from distgnn.bench.study import Plan, run_study
    from distgnn.config import Settings

    if out is not None:
        check_folder(out)
    plan = Plan(
        parts,
        parse_contenders(listed(algorithms)),
        list(dict.fromkeys(listed(network))),
        Settings(config, sizes, run),
        rounds,
        accuracy,
        tolerance,
        emulate,
        threads,
        hosts,
        sys.argv[1:],
    )
    result = run_study(plan.checked(), out, not quiet)
    if not quiet:
        print_columns(result.title, *result.table(), keys=3)  # ranks, network, algorithm
        for note in result.notes():
            print(f"  {note}")


def calibrate(
    ranks: int = typer.Option(1, help="Ranks to start where none were started."),
    seconds: float = typer.Option(3.0, help="How long each rank works."),
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Measure the ranks it is given, all at the same time, as they would train; prints --capacities for partition."""
    from distgnn.cli.places import run_on_ranks
    from distgnn.errors import InputError, on_all_ranks

    if not 0 < seconds <= 600:
        raise on_all_ranks(InputError(f"seconds is {seconds}: expected more than 0 and at most 600"))
    run_on_ranks(ranks, threads)
    from distgnn.bench.turns import measure_speeds
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
