"""Which fault is noticed by whom, after how long, and what is said.

Two watchers: in each rank `Watchdog` (in a loop of one's own `LoopWatch`), in the launcher `supervise`, with
`RunWatch` where ranks are started again. What one process sees at once, it says itself. T is --timeout.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """A fault, the file below distgnn/ that notices it, after how long, and a piece of the line that it says there."""

    what: str
    noticed_by: str
    after: str
    said: str


FAULTS = (
    Fault("a rank is killed", "system/jobs/death_watch.py", "at once", "was killed by"),
    Fault("a rank ends by os._exit", "system/jobs/death_watch.py", "at once", "without MPI_Finalize"),
    Fault("a rank ends before MPI_Init", "system/jobs/death_watch.py", "5 s", "left before it started MPI"),
    Fault("MPI does not start", "system/jobs/processes.py", "T, 60 s at least", "MPI did not start"),
    Fault("what started the ranks is killed", "system/jobs/supervise.py", "1 s", "what started the ranks"),
    Fault("a proxy is killed", "system/jobs/supervise.py", "3 s", "mpiexec has lost its proxy"),
    Fault("a machine is gone", "system/jobs/supervise.py", "20 s", "nothing is heard of the others"),
    Fault("a machine reaches the disk only", "system/jobs/run_watch.py", "T / 4", "does not answer"),
    Fault("all ranks are stopped", "system/jobs/run_watch.py", "T", "no rank has told what it does"),
    Fault("a rank hangs", "system/jobs/watchdog.py", "T less 5 s, 0.9 T at least", "nothing moved for"),
    Fault("a rank is stopped", "system/jobs/watchdog.py", "T less 5 s, 0.9 T at least", "does not answer (stopped"),
    Fault("a rank leaves while others wait", "comm/ending/leaving.py", "2 s", "the others wait in"),
    Fault("ranks make different calls", "comm/ending/in_step.py", "at once", "every rank must make the same calls"),
    Fault("a script fails on one rank", "comm/agree.py", "at once", "failed:"),
    Fault("a rank has no memory", "system/free_memory.py", "at once", "memory"),
    Fault("the launcher is killed", "system/jobs/processes.py", "at once", ""),
    Fault("a rank's parent is killed", "system/jobs/processes.py", "at once", ""),
)
