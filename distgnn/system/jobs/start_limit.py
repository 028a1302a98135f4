"""A limit for what comes before the watchdog: starting MPI, and the first word that all ranks have from one another.

MPI_Init of one rank waits for the others', in compiled code and with the interpreter's lock: no thread of ours could
speak. A timer of the kernel ends the process instead (SIGALRM: exit code 142), and what started it ends the others.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SHORTEST = 60.0  # importing takes half a minute on a machine with other work


@contextmanager
def start_limit(seconds: float, shortest: float = SHORTEST) -> Iterator[None]:
    """The block may take so many seconds, or `shortest` if that is more; 0: no limit."""
    limited = seconds > 0 and hasattr(signal, "setitimer")
    if limited:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, shortest))
    try:
        yield
    finally:
        if limited:
            signal.setitimer(signal.ITIMER_REAL, 0)
