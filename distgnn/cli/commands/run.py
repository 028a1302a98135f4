"""`distgnn run`: a script of the user's own on several ranks of this machine."""

import sys
from pathlib import Path
from typing import Annotated

import typer

CONTEXT = {
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}  # what follows is the script's


def run(
    command: Annotated[list[str], typer.Argument(metavar="SCRIPT.py [ARGUMENTS …]", help="Or a module after -m.")],
    ranks: int = typer.Option(..., "-n", "--ranks", help="Ranks to start: one per part."),
    threads: int | None = typer.Option(None, help="Threads per rank (default: cores / ranks)."),
    timeout: float | None = typer.Option(
        None, help="End the job (exit code 124) when ranks exchange nothing for so many seconds (default: none)."
    ),
    module: bool = typer.Option(False, "-m", help="The script is the name of a module, as in python -m."),
) -> None:
    """Run an own training script with mpiexec, each rank with its share of the cores, as torchrun does for torch.

    The script calls distgnn.load(parts): every rank gets its part. Options of the script follow its name. What
    it prints afterwards is the same on all ranks and comes from the first one; DISTGNN_PRINT=all shows every rank's.
    """
    from distgnn.errors import InputError
    from distgnn.system.launch import run_program, under_mpi

    if under_mpi():
        raise InputError("distgnn run starts ranks itself: under mpiexec or srun, run the script with python")
    if not module and not Path(command[0]).is_file():
        raise InputError(f"no script {command[0]}: give the path of a Python file, or -m and the name of a module")
    raise typer.Exit(run_program([sys.executable, *(["-m"] if module else []), *command], ranks, threads, timeout))
