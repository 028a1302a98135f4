"""The program `distgnn`: puts the commands together and turns errors into one line and an exit code.

Exit codes: 0 done; 2 bad input, or a run that cannot go on (one line on standard error); 1 our own failure (traceback
with the rank), or a check that failed; 124 nothing moved for --timeout seconds; 128 + n stopped by signal n.
"""

import os
import signal
import sys
import traceback
from typing import Any

import typer

from distgnn import __version__
from distgnn.cli.commands import (
    bench,
    bench_kernels,
    calibrate,
    check,
    correct_smooth,
    dgl_parts,
    download,
    launch,
    partition,
    predict,
    repartition,
    run,
    train,
    warmup,
)
from distgnn.cli.commands.scaling import plan, replay
from distgnn.cli.commands.show import info, models, report
from distgnn.errors import DistGNNError, RunStopped
from distgnn.system.launch import RANK_VARIABLES, torch_environment, under_mpi
from distgnn.system.output import lenient_output, plain

INTERRUPTED = 130

app = typer.Typer(
    help="Full-batch training of graph neural networks on clusters of CPU sockets.",
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
for command in (
    partition,
    repartition,
    dgl_parts,
    train,
    predict,
    correct_smooth,
    info,
    models,
    bench,
    bench_kernels,
    calibrate,
    check,
    launch,
    run,
    download,
    report,
    warmup,
    replay,
    plan,
):
    command.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"distgnn {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Full-batch training of graph neural networks on clusters of CPU sockets."""


def main() -> int:
    """Run the command line and return its exit code; a failing rank ends the whole job."""
    with lenient_output():
        return _main()


def _main() -> int:
    os.environ.update(torch_environment())
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # caught by typer, or the exit code of launched ranks
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except RunStopped as error:
        for number in (signal.SIGTERM, signal.SIGUSR1):  # srun ends slower ranks when the first is done
            signal.signal(number, signal.SIG_IGN)
        return _fail(str(error), 128 + error.signal, everywhere=True)
    except DistGNNError as error:
        return _fail(str(error), 2, everywhere=getattr(error, "agreed", False))
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except Exception as error:
        if hasattr(error, "format_message"):  # the command line itself is wrong: every rank sees the same
            return _fail(_with_advice(error), 2, everywhere=True)
        traceback.print_exc()
        phase = f" in {error.phase}" if hasattr(error, "phase") else ""
        return _fail(f"internal error on rank {_rank()}{phase}: {type(error).__name__}: {error}", 1)


def _with_advice(error: Any) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message.rstrip('.')}: see {context.command_path} --help"


def _fail(message: str, code: int, everywhere: bool = False) -> int:
    """Print one line. An error that all ranks share is printed once; one of a single rank ends the job."""
    if not everywhere or _rank() == 0:
        print(f"distgnn: error: {plain(message)}", file=sys.stderr, flush=True)
    if not everywhere and _num_ranks() > 1:
        sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(code)
    return code


def _num_ranks() -> int:
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi.COMM_WORLD.size if mpi is not None and under_mpi() else 1


def _rank() -> int:
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None:
        return mpi.COMM_WORLD.rank
    return next((int(os.environ[name]) for name in RANK_VARIABLES if os.environ.get(name, "").isdigit()), 0)
