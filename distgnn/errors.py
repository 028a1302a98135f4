"""The errors a user can cause. The command line prints them as one line and exits with code 2. And two warnings."""

import os
import sys
import sysconfig
from types import TracebackType
from typing import Any

LIBRARIES = ("torch", "torch_geometric", "dgl", "distgnn")
WRITTEN = ("-packages", "_propagate_", "_edge_updater_")  # in the name of a library's file, or of one that PyG writes


class DistGNNError(Exception):
    """Base of every error that is the input's fault: what was wrong, where, and what to do.

    `agreed` tells that every rank raises it, so that it is printed once and nobody is left waiting. `traced`: a caller
    of ranks shows where it was raised, too. `said`: who watched the ranks has printed it. `count`: how many rows of the
    input are wrong in this way, 0 where they were not counted.

    Example:
        >>> try:
        ...     dg.TrainConfig(lr=-1.0).check()
        ... except dg.DistGNNError as error:
        ...     print(error)
        lr is -1.0: expected a positive number, at most 1e30
    """

    agreed = False
    traced = True
    said = False
    count = 0

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback: IPython asks for it under this name."""
        return [f"{type(self).__name__}: {self}"]


def on_all_ranks(error: DistGNNError) -> DistGNNError:
    """Mark an error that every rank raises at the same point."""
    error.agreed = True
    return error


class InputError(DistGNNError, ValueError):
    """An argument, option or input graph is wrong."""


class GraphFormatError(DistGNNError, ValueError):
    """A graph folder, OGB download or array file is damaged or not what its reader expects."""


class PartitionFormatError(DistGNNError, ValueError):
    """A partition folder is damaged, from another version, or not one: says which file and what."""


class RunError(DistGNNError, RuntimeError):
    """A run cannot go on: wrong rank count, no MPI library, a loss that is not a number."""


class RunStopped(RunError):
    """A signal asked a run to stop; it ended after an epoch, with a checkpoint.

    `signal` is its number: the program's exit code is 128 + signal.
    """

    signal: int
    epochs_done: int
    run_dir: str | None

    def __init__(self, signal: int, epochs_done: int = 0, run_dir: str | None = None):
        name = {2: "SIGINT", 10: "SIGUSR1", 15: "SIGTERM"}.get(signal, f"signal {signal}")
        if signal == 10 and os.environ.get("DISTGNN_LAUNCHED") == "1":  # the launcher passes every signal on so
            name = "the launcher's signal"
        super().__init__(
            f"stopped by {name} after {epochs_done} epochs; {run_dir} has a checkpoint: go on with --resume "
            "(from Python: resume=True)"
        )
        self.signal, self.epochs_done, self.run_dir = signal, epochs_done, run_dir

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.signal, self.epochs_done, self.run_dir), self.__dict__


def exit_code(error: BaseException) -> int:
    """What a program ends with after an error: as `distgnn` itself does."""
    if isinstance(error, RunStopped):
        return 128 + error.signal
    return 2 if isinstance(error, DistGNNError) else 1


def users_trace(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    """A traceback; of an error of ours only the user's lines, where there are any."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    found = None
    for one in reversed(frames) if isinstance(error, DistGNNError) else ():
        if not _is_of_library(one):
            found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found or (frames[0] if frames else None)


def users_line(error: BaseException, trace: TracebackType | None) -> str:
    """Where in the user's own code an error of ours was met: " (FILE:LINE)", or nothing."""
    trace = users_trace(error, trace)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or _is_of_library(trace):
        return ""
    return f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"


def _is_of_library(trace: TracebackType) -> bool:
    name, file = str(trace.tb_frame.f_globals.get("__name__")), trace.tb_frame.f_code.co_filename
    places = (os.path.dirname(__file__), sysconfig.get_path("stdlib"), "<frozen", "<eval_with_key>")
    return name.partition(".")[0] in LIBRARIES or file.startswith(places) or any(map(file.__contains__, WRITTEN))


class OnRank(Exception):
    """The `__cause__` of an exception that a function on ranks raised: the rank, and its traceback there."""

    def __init__(self, rank: int, num_ranks: int, trace: str):
        super().__init__(f"on rank {rank} of {num_ranks}\n{trace.rstrip()}")
        self.rank = rank


class GraphWarning(UserWarning):
    """Something of a graph was left out, or looks as if it meant something else; every such thing is named."""


class GraphNotice(Warning):
    """Columns of a graph were taken from names, or forms, that are not the usual ones; nothing was lost."""


def is_of_mpi(error: BaseException) -> bool:
    """Is an error MPI's own? Does not import MPI, which would start it."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and isinstance(error, mpi.Exception)
