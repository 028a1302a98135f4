"""A user's own script under mpiexec: an uncaught exception on one rank ends the job instead of hanging it.

Exit codes are those of the program: 2 for a mistake in the input, 128 + n for a run stopped by signal n, 1 for others.
"""

import os
import sys
import time
import traceback
from types import TracebackType

from mpi4py import MPI

from distgnn.errors import DistGNNError, exit_code
from distgnn.system.free_memory import no_memory
from distgnn.system.jobs.own_rank import DEATH_SECONDS, SPEAK_SECONDS, abort_job, is_child, may_end_alone
from distgnn.system.output import ERROR, say


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
                traceback.print_exception(kind, error, trace)
        elif comm.rank == 0:
            say(error, ERROR)
        sys.stderr.flush()
        if not shared:
            abort_job(code)
        raise SystemExit(code)

    report_and_abort.aborts = True  # type: ignore[attr-defined]
    sys.excepthook = report_and_abort
