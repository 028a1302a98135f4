"""A user's own script under mpiexec: an uncaught exception on one rank ends the job instead of hanging it."""

import sys
import traceback
from types import TracebackType

from mpi4py import MPI

from distgnn.errors import DistGNNError
from distgnn.system.output import plain


def abort_on_uncaught(comm: MPI.Comm) -> None:
    """Let an uncaught exception print its rank and abort all ranks. Errors that all ranks share are printed once."""
    if comm.size == 1 or getattr(sys.excepthook, "aborts", False):
        return

    def report_and_abort(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        shared = isinstance(error, DistGNNError) and error.agreed
        if not shared:
            print(f"rank {comm.rank} failed:", file=sys.stderr)
            traceback.print_exception(kind, error, trace)
        elif comm.rank == 0:
            print(f"distgnn: error: {plain(error)}", file=sys.stderr)
        sys.stderr.flush()
        if not shared:
            MPI.COMM_WORLD.Abort(1)

    report_and_abort.aborts = True  # type: ignore[attr-defined]
    sys.excepthook = report_and_abort
