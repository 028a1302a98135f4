"""A watchdog for training loops of one's own: it ends a job in which a rank leaves the others waiting.

    with dg.watchdog(graph, seconds=300):
        for graph.step in range(epochs):
            …

`distgnn run --timeout 300 script.py` does the same from `dg.load` to the end of the script. Nobody tells the watchdog
what such a loop is doing, so it looks at what it exchanges: a rank has gone on when there was an exchange of rows or a
sum of gradients, of any graph.
"""

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mpi4py import MPI

from distgnn.comm.transport import all_moves
from distgnn.errors import InputError, on_all_ranks
from distgnn.system.jobs.rank_log import RankLog
from distgnn.system.jobs.watchdog import Watchdog
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
    with LoopWatch(graph.comm, seconds, folder, "dg.watchdog").running():
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
    stack.enter_context(LoopWatch(comm, seconds, None, "--timeout").running())
    atexit.register(stack.close)


_watching: list[ExitStack] = []  # of this process: one at most


class LoopWatch(Watchdog):
    """Watches the exchanges of one rank.

    Args: comm: over all ranks; seconds, folder: as of `watchdog`; option: who sets the limit. Collective: yes.
    """

    def __init__(self, comm: Any, seconds: float, folder: str | Path | None, option: str):
        self.own_folder: str | None = None
        if folder is None:  # a new temporary folder, where all ranks are on one machine
            near = comm.Split_type(MPI.COMM_TYPE_SHARED)
            everyone = near.size == comm.size
            near.Free()
            made = tempfile.mkdtemp(prefix="distgnn-watch-") if everyone and comm.rank == 0 else None
            self.own_folder = comm.bcast(made, root=0)
        found = folder or self.own_folder
        super().__init__(comm, RankLog(None if found is None else str(found), comm.rank), seconds)
        self.option, self._moves = option, (-1, -1)
        self._look()

    def _look(self) -> None:
        moves = all_moves()
        if moves != self._moves:
            self._moves = moves
            self.phase = f"the loop, after {moves[0]} exchanges,"

    def _goes_on(self, told: list[str | None]) -> bool:
        statuses = [json.loads(text or "null") or {} for text in told]
        ended = [one.get("ended", False) for one in statuses]
        if any(ended) and not any(one.get("waits") for one in statuses):
            return True  # the last ranks finish what is theirs alone
        return super()._goes_on(told)

    def _leave(self) -> None:
        """What this rank did stays known until all have left."""
        self.log.set_status(json.dumps({"ended": True}))
        if self.own_folder and all('"ended"' in (text or "") for text in self._statuses.hear()):
            self._remove_folder()

    def _end_the_job(self, text: str) -> None:
        self._remove_folder()
        super()._end_the_job(text)

    def _remove_folder(self) -> None:
        if self.own_folder:
            shutil.rmtree(self.own_folder, ignore_errors=True)
