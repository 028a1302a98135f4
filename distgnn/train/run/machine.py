"""The process of a rank: where it runs, versions of its libraries, and signals that ask a run to stop.

Slurm warns with `--signal=USR1@120` before the time limit, `scancel` sends SIGTERM, a terminal SIGINT. Where one rank
is asked, all stop after the same step, with a checkpoint.
"""

import os
import platform
import signal
import threading
from importlib import metadata
from typing import Any

import torch
from mpi4py import MPI

import distgnn
from distgnn.comm import check_same
from distgnn.graph.cores import my_cores, ranges

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
INSISTENT = (signal.SIGTERM, signal.SIGINT)  # a second one of these ends the process at once


def where_this_rank_runs() -> str:
    """Host, process, cores and threads in one line, for the rank's log."""
    return (
        f"host {platform.node()}, process {os.getpid()}, cores {ranges(my_cores())}, {torch.get_num_threads()} threads"
    )


def versions() -> dict[str, str]:
    """Versions that can change a number."""
    packages = {name: metadata.version(name) for name in ("torch", "numba", "numpy", "mpi4py")}
    library = MPI.Get_library_version().split("\n")[0].strip().strip("\x00")
    return {"distgnn": distgnn.__version__, "python": platform.python_version(), "mpi": library} | packages


def check_program(comm: Any) -> None:
    """Raise RunError on every rank for other versions of the program, its libraries or MPI's on one. Collective."""
    check_same(comm, versions(), "install the same versions on every machine")


class Interrupts:
    """Remembers the first signal of `SIGNALS` while entered; `received` is its number, 0 for none.

    Args: wanted: False installs nothing: signals do what they did before.
    Notes: outside the main thread nothing is installed: Python delivers signals there only.
    """

    def __init__(self, wanted: bool = True):
        self.wanted = wanted
        self.received: int = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if self.wanted and threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._remember) for number in SIGNALS}
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._previous.items():
            # The launcher repeats SIGUSR1 until the run has ended.
            asked_again = bool(self.received) and number not in INSISTENT
            default = signal.SIG_IGN if asked_again else signal.SIG_DFL
            signal.signal(number, default if handler in (None, signal.SIG_DFL) else handler)

    def _remember(self, number: int, _frame: Any) -> None:
        if self.received and number in INSISTENT:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.received = self.received or number
