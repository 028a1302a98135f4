"""A user's own script under mpiexec: an uncaught exception on one rank ends the job instead of hanging it.

Exit codes are those of the program: 2 for a mistake in the input, 128 + n for a run stopped by signal n, 1 for others.
"""

import sys
import time
import traceback
from types import TracebackType

from mpi4py import MPI

from distgnn.errors import DistGNNError, RunStopped
from distgnn.system.jobs.last_word import abort_job
from distgnn.system.output import plain

SPEAK_SECONDS = 0.3  # between ranks that fail alike: the job ends when the first has spoken


def abort_on_uncaught(comm: MPI.Comm) -> None:
    """Let an uncaught exception print its rank and abort all ranks. Errors that all ranks share are printed once.

    Notes: where all ranks make the same mistake, the lowest speaks, and the job is over before the others do.
    """
    if comm.size == 1 or getattr(sys.excepthook, "aborts", False):
        return

    def report_and_abort(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        shared = isinstance(error, DistGNNError) and error.agreed
        if not shared:
            time.sleep(SPEAK_SECONDS * min(comm.rank, 10))
            print(f"rank {comm.rank} failed:", file=sys.stderr)
            traceback.print_exception(kind, error, trace)
        elif comm.rank == 0:
            print(f"distgnn: error: {plain(error)}", file=sys.stderr)
        sys.stderr.flush()
        if not shared:
            abort_job(exit_code(error))
        raise SystemExit(exit_code(error))

    report_and_abort.aborts = True  # type: ignore[attr-defined]
    sys.excepthook = report_and_abort


def exit_code(error: BaseException) -> int:
    """What a program ends with after an error: as `distgnn` itself does."""
    if isinstance(error, RunStopped):
        return 128 + error.signal
    return 2 if isinstance(error, DistGNNError) else 1
