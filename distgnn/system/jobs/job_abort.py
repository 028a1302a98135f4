"""The end of a job by one of its ranks, once the launcher has read what that rank wrote."""

import array
import fcntl
import os
import stat
import sys
import termios
import time
from contextlib import suppress

from distgnn.system.jobs.own_rank import is_child

DEATH_SECONDS = 2.0  # from an error of MPI to the end of a job in which another rank was killed
SPEAK_SECONDS = 0.3  # between ranks that fail alike: the job ends when the first has spoken
READ_SECONDS = 1.0  # a launcher that reads nothing for longer does not hold the end up


def abort_job(code: int) -> None:
    """End every rank, with this exit code, once the launcher has read what this rank wrote; a fork of a rank goes on.

    Notes: a launcher passes on its ranks' output in the order in which it comes to read it, and may hear of the end
        first (mpich's hydra lost the last line of one job in three).
    """
    from mpi4py import MPI

    if is_child():
        return
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
