"""`distgnn launch`: another command on the ranks of several machines."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command(context_settings={"ignore_unknown_options": True})(launch)


def launch(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND …", help="As in: -- train parts/ --epochs 200")],
    hosts: str = typer.Option(..., help="File with one machine per line: NAME or NAME:RANKS."),
    threads: int | None = typer.Option(None, help="Threads per rank (default: this machine's cores / its ranks)."),
) -> None:
    """Start a distgnn command with mpiexec on several machines; paths must mean the same on all of them."""
    from distgnn.errors import InputError
    from distgnn.system.hosts import read_hosts
    from distgnn.system.launch import run_on_hosts, under_mpi

    if under_mpi():
        raise InputError("distgnn launch starts ranks itself: it cannot run on one")
    raise typer.Exit(run_on_hosts(command, read_hosts(hosts), threads, graceful=command[0] == "train"))
