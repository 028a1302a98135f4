"""The end of a job by one of its ranks, after what that rank has said."""

import array
import fcntl
import os
import stat
import sys
import termios
import time
from contextlib import suppress

READ_SECONDS = 1.0  # a launcher that reads nothing for longer does not hold the end up


def abort_job(code: int) -> None:
    """End every rank, with this exit code, once the launcher has read what this rank wrote.

    Notes: a launcher passes on its ranks' output in the order in which it comes to read it, and may hear of the end
        first (mpich's hydra lost the last line of one job in three).
    """
    from mpi4py import MPI

    wait_until_read(READ_SECONDS)
    MPI.COMM_WORLD.Abort(code)


def wait_until_read(seconds: float) -> None:
    """Wait until who reads this process's standard output and error has done so; only pipes are waited for."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # full, closed, none
            stream.flush()
    deadline = time.monotonic() + seconds
    while any(_unread(number) for number in (1, 2)) and time.monotonic() < deadline:
        time.sleep(0.002)


def _unread(number: int) -> int:
    """Bytes in a pipe; 0 where that is not known."""
    try:
        if not stat.S_ISFIFO(os.fstat(number).st_mode):
            return 0
        count = array.array("i", [0])
        fcntl.ioctl(number, termios.FIONREAD, count)
        return count[0]
    except OSError:
        return 0
