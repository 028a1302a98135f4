"""A watchdog for training loops of one's own: it ends a job in which a rank leaves the others waiting.

    with dg.watchdog(graph, seconds=300):
        for graph.step in range(epochs):
            …

`distgnn run --timeout 300 script.py` does the same from `dg.load` to the end of the script. Nobody tells the watchdog
what such a loop is doing, so it looks at what it exchanges: a rank has gone on when there was an exchange of rows or a
sum of gradients, of any graph.
"""

import atexit
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mpi4py import MPI

from distgnn.comm.transport import all_moves
from distgnn.errors import InputError, on_all_ranks
from distgnn.system.jobs.rank_log import RankLog
from distgnn.system.jobs.watchdog import Loop, Watchdog
from distgnn.system.launch import TIMEOUT_VARIABLE, check_timeout


@contextmanager
def watchdog(graph: Any, seconds: float, folder: str | Path | None = None) -> Iterator[None]:
    """End the job, with one line that names the rank, once nothing was exchanged for `seconds` and a rank waits.

    Collective: yes, entering it. On one rank nothing is watched.

    Args:
        graph: a DistGraph; seconds: longer than the longest work between two exchanges, evaluation and files included.
        folder: where ranks tell each other what they do, in files of a few bytes; None: a temporary one where all
            ranks are on one machine, and none (a rank then knows of itself only) where they are not.

    Notes: exit code 124. Compiling kernels does not count, nor time in which the process was stopped.

    Example:
        >>> with dg.watchdog(graph, seconds=600):
        ...     total = graph.feats.sum()
    """
    check_timeout("seconds", seconds)
    if graph.comm.size == 1:
        yield
        return
    with _loop_watch(graph.comm, seconds, folder, "dg.watchdog").running():
        yield


def watch_to_the_end(comm: MPI.Comm) -> None:
    """Watch this process until it ends, where DISTGNN_TIMEOUT is set on rank 0; once, however many graphs it loads.

    Where some of the ranks have loaded a graph among themselves, this watch takes the place of theirs.

    Collective: yes. Raises: InputError on every rank.
    """
    if comm.size == 1 or comm.allreduce(bool(_watching), op=MPI.LAND):
        return
    text = comm.bcast(os.environ.get(TIMEOUT_VARIABLE), root=0)
    if not text:
        return
    try:
        seconds = check_timeout(TIMEOUT_VARIABLE, text)
    except InputError as error:
        raise on_all_ranks(error) from None
    if _watching:
        _watching.pop().close()
    stack = ExitStack()
    _watching.append(stack)
    stack.enter_context(_loop_watch(comm, seconds, None, "--timeout").running())
    atexit.register(stack.close)


_watching: list[ExitStack] = []  # of this process: one at most


def _loop_watch(comm: MPI.Comm, seconds: float, folder: str | Path | None, option: str) -> Watchdog:
    """What watches the exchanges of one rank. Collective: yes."""
    if folder is None:  # a new temporary folder, where all ranks are on one machine
        near = comm.Split_type(MPI.COMM_TYPE_SHARED)
        everyone = near.size == comm.size
        near.Free()
        folder = comm.bcast(tempfile.mkdtemp(prefix="distgnn-watch-") if everyone and comm.rank == 0 else None, root=0)
    log = RankLog(None if folder is None else str(folder), comm.rank)
    return Watchdog(comm, log, seconds, Loop(all_moves, option))
