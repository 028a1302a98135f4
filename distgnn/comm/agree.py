"""One rank's error becomes every rank's error, or ends the job, so that nobody is left waiting.

Of an error that nobody catches the exit code is the program's: 2 for a mistake in the input, 128 + n for a run stopped
by signal n, 1 for others.
"""

import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType

from mpi4py import MPI

from distgnn.errors import DistGNNError, RunError, exit_code, on_all_ranks, users_line, users_trace
from distgnn.system.free_memory import no_memory
from distgnn.system.jobs.own_rank import DEATH_SECONDS, SPEAK_SECONDS, abort_job, is_child, may_end_alone
from distgnn.system.output import ERROR, say


def agree(comm: MPI.Comm, error: Exception | None) -> None:
    """Raise the lowest failing rank's error on every rank.

    Collective: yes. One integer over all ranks when nothing is wrong.

    Raises:
        The lowest failing rank's error: the same class and text everywhere. An error that is not ours (a bug) keeps its
        traceback on its own rank; a shortage of memory is a RunError.
    """
    shortage = None if error is None else no_memory(error, comm.rank)
    if shortage is not None:
        error = RunError(shortage)
    first = comm.allreduce(comm.rank if error is not None else comm.size, op=MPI.MIN)
    if first == comm.size:
        return
    kind, text = comm.bcast((type(error), str(error)) if comm.rank == first else None, root=first)
    if error is not None and not isinstance(error, DistGNNError):
        raise error
    if isinstance(error, DistGNNError) and comm.rank == first:
        raise on_all_ranks(error)
    if issubclass(kind, DistGNNError):
        raise on_all_ranks(kind(text)) from error
    raise on_all_ranks(RunError(f"rank {first} failed: {kind.__name__}: {text}"))


@contextmanager
def raise_together(comm: MPI.Comm) -> Iterator[None]:
    """A block that every rank enters; an error in it on any rank is raised on all at its end. Collective."""
    error = None
    try:
        yield
    except Exception as caught:
        error = caught
    agree(comm, error)


def check_same(comm: MPI.Comm, values: Mapping[str, object], advice: str) -> None:
    """Refuse to go on where ranks differ in what must be the same (program version, partition, settings).

    Collective: yes.

    Raises:
        RunError: on every rank, with the first name that differs and the ranks' values.
    """
    rows = comm.allgather(values)
    for name in values:
        everywhere = [row[name] for row in rows]
        if any(value != everywhere[0] for value in everywhere):
            rank = next(rank for rank, value in enumerate(everywhere) if value != everywhere[0])
            two = f"rank 0 has {everywhere[0]}, rank {rank} has {everywhere[rank]}"
            raise on_all_ranks(RunError(f"ranks differ in {name}: {two}: {advice}"))


def abort_on_uncaught(comm: MPI.Comm, alone: bool = True) -> None:
    """Let an uncaught exception print its rank and abort all ranks. Errors that all ranks share are printed once.

    Args: alone: a single rank is one process; else one of several without MPI between them, which speak in one line.

    Notes: where all ranks make the same mistake, the lowest speaks, and the job is over before the others do.
    """
    if (comm.size == 1 and alone) or getattr(sys.excepthook, "aborts", False):
        return

    def report_and_abort(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if is_child():  # a fork of a rank fails as any process does; it leaves MPI alone, which is its parent's
            traceback.print_exception(kind, error, trace)
            if not may_end_alone():
                sys.stderr.flush()
                os._exit(1)
            return
        if isinstance(error, MPI.Exception):
            time.sleep(DEATH_SECONDS)  # another rank may have died: who started the ranks then says so, and ends them
        shortage = no_memory(error, comm.rank)
        code = 2 if shortage is not None else exit_code(error)
        shared = isinstance(error, DistGNNError) and (error.agreed or comm.size == 1)
        if not shared:
            time.sleep(SPEAK_SECONDS * min(comm.rank, 10))
            if shortage is not None:
                say(shortage, ERROR)
            else:
                print(f"rank {comm.rank} failed:", file=sys.stderr)
                traceback.print_exception(kind, error, users_trace(error, trace))
        elif comm.rank == 0:
            say(f"{error}{users_line(error, trace)}", ERROR)
        sys.stderr.flush()
        if not shared:
            abort_job(code)
        raise SystemExit(code)

    report_and_abort.aborts = True  # type: ignore[attr-defined]
    sys.excepthook = report_and_abort
