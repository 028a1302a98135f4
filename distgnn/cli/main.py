"""The program `distgnn`: puts the commands together and turns errors into one line and an exit code.

Exit codes: 0 done; 2 bad input, or a run that cannot go on (one line on standard error); 1 our own failure (traceback
with the rank), or a check that failed; 124 nothing moved for --timeout seconds; 128 + n stopped by signal n.
"""

import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

import typer

from distgnn import __version__
from distgnn.config import extras
from distgnn.errors import DistGNNError, RunStopped, is_of_mpi
from distgnn.system.free_memory import no_memory
from distgnn.system.jobs.own_rank import DEATH_SECONDS, RANK_VARIABLES, SPEAK_SECONDS, abort_job, under_mpi
from distgnn.system.jobs.supervise import SAID
from distgnn.system.launch import torch_environment
from distgnn.system.output import ERROR, lenient_output, say

INTERRUPTED = 130
COMMANDS = {  # what is typed -> its module below distgnn.cli.commands, in the order of --help
    "partition": "partition",
    "repartition": "partition",
    "import-dgl": "partition",
    "train": "train",
    "predict": "predict",
    "info": "show",
    "models": "show",
    "bench": "bench",
    "calibrate": "bench",
    "check": "setup",
    "launch": "launch",
    "run": "launch",
    "download": "setup",
    "warmup": "setup",
    "cache": "show",
}


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"distgnn {__version__}")
        raise typer.Exit()


def options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Full-batch training of graph neural networks on clusters of CPU sockets."""


def make_app(words: Sequence[str] = ()) -> typer.Typer:
    """The program for a command line: with the one command that it names, else with all.

    Notes: every rank of a run starts with this; the modules of all commands are a tenth of a second.
    """
    app = typer.Typer(
        help="Full-batch training of graph neural networks on clusters of CPU sockets.",
        pretty_exceptions_enable=False,
        no_args_is_help=True,
    )
    app.callback()(options)
    of_extras = extras.commands()
    names = [*COMMANDS, *of_extras]
    for name in words[:1] if words and words[0] in names else names:
        if name in of_extras:
            app.command(name, rich_help_panel="Commands of extras")(of_extras[name]())
            continue
        module = importlib.import_module(f"distgnn.cli.commands.{COMMANDS[name]}")
        context, epilog = getattr(module, "CONTEXTS", {}).get(name), getattr(module, "EPILOG", None)
        app.command(name, context_settings=context, epilog=epilog)(getattr(module, name.replace("-", "_")))
    return app


def main() -> int:
    """Run the command line and return its exit code; a failing rank ends the whole job."""
    with lenient_output():
        return _main()


def _main() -> int:
    os.environ.update(torch_environment())
    try:
        code = make_app(sys.argv[1:])(standalone_mode=False)
        if code == INTERRUPTED:  # caught by typer, or the exit code of launched ranks
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except RunStopped as error:
        for number in (signal.SIGTERM, signal.SIGUSR1):  # srun ends slower ranks when the first is done
            signal.signal(number, signal.SIG_IGN)
        heard = os.environ.get("DISTGNN_LAUNCHED") == "1" and under_mpi()  # by the launcher, which need not speak
        return _fail(str(error), 128 + error.signal + SAID * heard, everywhere=True)
    except DistGNNError as error:
        return 2 if error.said else _fail(str(error), 2, everywhere=getattr(error, "agreed", False))
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except Exception as error:
        if hasattr(error, "format_message"):  # the command line itself is wrong: every rank sees the same
            return _fail(_with_advice(error), 2, everywhere=True)
        shortage = no_memory(error, _rank())
        if shortage is not None:
            time.sleep(SPEAK_SECONDS * min(_rank(), 10))
            return _fail(shortage, 2)
        if is_of_mpi(error):
            time.sleep(DEATH_SECONDS)  # another rank may have died: who started the ranks ends them all
        traceback.print_exc()
        phase = f" in {error.phase}" if hasattr(error, "phase") else ""
        return _fail(f"internal error on rank {_rank()}{phase}: {type(error).__name__}: {error}", 1)


def _with_advice(error: Any) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", None) or ""
    name, command = option.lstrip("-").replace("-", "_"), getattr(context, "command", None)
    if name in getattr(getattr(command, "callback", None), "rarely_set", ()):
        message = f"{option} is rarely needed, and no option of its own: give --set {name}=VALUE"
    elif message.startswith("No such"):  # a command or an option
        message += f" ({extras.here()})"
    return message if context is None else f"{message}: see {context.command_path} --help"


def _fail(message: str, code: int, everywhere: bool = False) -> int:
    """Print one line. An error that all ranks share is printed once; one of a single rank ends the job."""
    if not everywhere or _rank() == 0:
        say(message, ERROR)
    if not everywhere and _num_ranks() > 1:
        abort_job(code)
    return code


def _num_ranks() -> int:
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi.COMM_WORLD.size if mpi is not None and mpi.Is_initialized() and under_mpi() else 1


def _rank() -> int:
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized():
        return mpi.COMM_WORLD.rank
    return next((int(os.environ[name]) for name in RANK_VARIABLES if os.environ.get(name, "").isdigit()), 0)
