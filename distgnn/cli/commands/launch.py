"""Commands that start ranks for others: another command on several machines, or a user's own script on this one."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.options import with_options
from distgnn.config import LaunchConfig, Settings
from distgnn.errors import InputError
from distgnn.system.launch import run_program, run_under_mpi, under_mpi
from distgnn.system.scripts import run_script

CONTEXTS = {
    "launch": {"ignore_unknown_options": True},  # options of COMMAND
    "run": {"ignore_unknown_options": True, "allow_interspersed_args": False},  # what follows is the script's
}


@with_options
def launch(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND …", help="As in: -- train parts/ --epochs 200")],
    launching: LaunchConfig,
    hosts: str = typer.Option(..., help="File with one machine per line: NAME or NAME:RANKS."),
    threads: int | None = typer.Option(None, help="Threads per rank (default: this machine's cores / its ranks)."),
) -> None:
    """Start a distgnn command with mpiexec on several machines; paths must mean the same on all of them."""
    from distgnn.cli.places import Machines, SameRanks, argument_place, parsed
    from distgnn.partition import read_manifest
    from distgnn.system.hosts import check_names, read_hosts
    from distgnn.system.jobs.restarts import run_dir_in

    if under_mpi():
        raise InputError("distgnn launch starts ranks itself: it cannot run on one")
    launching.check()
    machines = check_names(read_hosts(hosts))
    if any(word.partition("=")[0] == "--restarts" for word in command):
        raise InputError("--restarts is an option of launch: it stands before --")
    if not launching.restarts:
        raise typer.Exit(run_under_mpi(command, machines, threads, graceful=command[0] == "train"))
    if command[0] != "train":
        raise InputError(f"--restarts is for train: {command[0]} has no checkpoints to go on from")
    words, run_dir = [command[0], "--restarts", str(launching.restarts), *command[1:]], run_dir_in(command)
    command_of_train = _train_command()
    said = parsed(command_of_train, words)
    parts, settings = said.get("parts") or "", Settings().with_options({k: v for k, v in said.items() if v is not None})
    launching.check(settings.schedule)
    num_ranks = read_manifest(parts)["num_parts"]
    again = SameRanks.of(words, argument_place(command_of_train, words, parts), num_ranks, launching, run_dir)
    raise typer.Exit(again.run(Machines(hosts, threads)))


def _train_command() -> Any:
    from distgnn.cli.commands import train

    app = typer.Typer()
    app.command()(train.train)
    return typer.main.get_command(app)


def run(
    command: Annotated[list[str], typer.Argument(metavar="SCRIPT.py [ARGUMENTS …]", help="Or a module after -m.")],
    ranks: int = typer.Option(..., "-n", "--ranks", help="Ranks to start: one per part."),
    threads: int | None = typer.Option(None, help="Threads per rank (default: cores / ranks)."),
    timeout: float | None = typer.Option(
        None, help="End the job (exit code 124) when ranks exchange nothing for this number of seconds (default: none)."
    ),
    module: bool = typer.Option(False, "-m", help="The script is the name of a module, as in python -m."),
) -> None:
    """Run an own training script with mpiexec, each rank with its share of the cores, as torchrun does for torch.

    The script calls distgnn.load(parts): every rank gets its part. Options of the script follow its name. What
    it prints afterwards is the same on all ranks and comes from the first one; DISTGNN_PRINT=all shows every rank's.
    """
    if under_mpi():
        raise InputError("distgnn run starts ranks itself: under mpiexec or srun, run the script with python")
    if not module and not Path(command[0]).is_file():
        raise InputError(f"no script {command[0]}: give the path of a Python file, or -m and the name of a module")
    program = [sys.executable, run_script.__file__, *["-m"] * module, *command]
    raise typer.Exit(run_program(program, ranks, threads, timeout))
