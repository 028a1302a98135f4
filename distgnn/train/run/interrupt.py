"""Signals that ask a run to stop: remembered, and obeyed by all ranks together after the step.

Slurm warns with `--signal=USR1@120` before the time limit, `scancel` sends SIGTERM, a terminal SIGINT. Where one rank
is asked, all stop after the same step, with a checkpoint.
"""

import os
import signal
import threading
import time
from typing import Any

from distgnn.system.jobs.own_rank import under_mpi
from distgnn.system.jobs.supervise import SAME_SECONDS

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
INSISTENT = (signal.SIGTERM, signal.SIGINT)  # one of these, SAME_SECONDS after the first, ends the process at once


class Interrupts:
    """Remembers the first signal of `SIGNALS` while entered; `received` is its number, 0 for none.

    Args: wanted: False installs nothing: signals do what they did before.
    Notes: `scancel --full`, systemd and terminals send a signal to every process of a job, and those that start ranks
        pass it on: what comes within SAME_SECONDS is one request. Outside the main thread nothing is installed: Python
        delivers signals there only.
    """

    def __init__(self, wanted: bool = True):
        self.wanted = wanted
        self.received: int = 0
        self._since = 0.0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if self.wanted and threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._remember) for number in SIGNALS}
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._previous.items():
            # The launcher repeats SIGUSR1 until the run has ended, and others of one request may come late.
            asked_again = bool(self.received) and (under_mpi() or number not in INSISTENT)
            default = signal.SIG_IGN if asked_again else signal.SIG_DFL
            plain = (None, signal.SIG_DFL, signal.default_int_handler if asked_again else None)
            signal.signal(number, default if handler in plain else handler)

    def _remember(self, number: int, _frame: Any) -> None:
        now = time.monotonic()
        if self.received and number in INSISTENT and now - self._since > SAME_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._since = self._since if self.received else now
        self.received = self.received or number
