"""`distgnn launch`: another command on the ranks of several machines."""

from typing import Annotated, Any

import typer

from distgnn.cli.commands import train
from distgnn.cli.options import with_options
from distgnn.config import LaunchConfig

CONTEXT = {"ignore_unknown_options": True}  # those of COMMAND


@with_options
def launch(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND …", help="As in: -- train parts/ --epochs 200")],
    launching: LaunchConfig,
    hosts: str = typer.Option(..., help="File with one machine per line: NAME or NAME:RANKS."),
    threads: int | None = typer.Option(None, help="Threads per rank (default: this machine's cores / its ranks)."),
) -> None:
    """Start a distgnn command with mpiexec on several machines; paths must mean the same on all of them."""
    from functools import partial

    from distgnn.cli.elastic import Elastic, Machines, argument_place, parsed
    from distgnn.errors import InputError
    from distgnn.partition import read_manifest
    from distgnn.system.hosts import read_hosts
    from distgnn.system.jobs.restarts import run_again, run_dir_in
    from distgnn.system.launch import run_under_mpi, under_mpi

    if under_mpi():
        raise InputError("distgnn launch starts ranks itself: it cannot run on one")
    launching.check()
    start = partial(run_under_mpi, ranks=read_hosts(hosts), threads=threads, graceful=command[0] == "train")
    if any(word.partition("=")[0] == "--restarts" for word in command):
        raise InputError("--restarts is an option of launch: it stands before --")
    if not launching.restarts:
        raise typer.Exit(start(command))
    if command[0] != "train":
        raise InputError(f"--restarts is for train: {command[0]} has no checkpoints to go on from")
    words, run_dir = [command[0], "--restarts", str(launching.restarts), *command[1:]], run_dir_in(command)
    command_of_train = _train_command()
    said = parsed(command_of_train, words)
    parts, columns = said.get("parts") or "", said.get("columns") or 1
    launching.check(columns)
    num_ranks = read_manifest(parts)["num_parts"] * columns
    elastic = Elastic(words, argument_place(command_of_train, words, parts), num_ranks, launching, run_dir)
    machines = Machines(hosts, threads, run_dir)
    regroup = partial(elastic.team, machines)
    raise typer.Exit(run_again(words, machines.start(num_ranks), launching.restarts, run_dir, regroup=regroup))


def _train_command() -> Any:
    app = typer.Typer()
    app.command()(train.train)
    return typer.main.get_command(app)
