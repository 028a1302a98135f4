"""Who names a rank that is killed where no launcher of ours does: a process beside each rank.

    python -I -S death_watch.py RANK PID NOTE_FD

A user's own `mpiexec` or srun starts ranks; the first import of distgnn in a rank starts this (own_rank.py). It holds
the rank's output and its socket to the starter (PMI_FD). So the starter hears of the rank's end when the line is
written, and ends the other ranks after it. Their watchers are ended before, so that they do not name these.

A starter that is told to end all ranks sends them SIGKILL as well. Then a neighbour is dead within NEIGHBOUR_SECONDS,
and nothing is said.

Nothing else of ours is imported: a start takes some 20 ms.
"""

import importlib
import os
import select
import signal
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

if not __package__:  # a program of its own: the package is not imported, what it needs stands beside it
    sys.path.append(os.path.dirname(__file__))
    for name in ("job_cleanup", "local_mpiexec"):
        sys.modules[f"distgnn.system.jobs.{name}"] = importlib.import_module(name)

from distgnn.system.jobs.job_cleanup import children, runs, stat_of
from distgnn.system.jobs.local_mpiexec import HOST, death_line, memory_kills, say, words_of

NEIGHBOUR_SECONDS = 0.5
FROM_OUTSIDE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGALRM)


def start_death_watch(rank: int, note_file: int) -> None:
    """Start the process for this rank, which reads what the rank does from `note_file`. Linux 5.3 or later."""
    if not hasattr(os, "pidfd_open") or not hasattr(os, "posix_spawn"):
        return
    words = [sys.executable, "-I", "-S", __file__, str(rank), str(os.getpid()), str(note_file)]
    os.set_inheritable(note_file, True)
    with suppress(OSError, NotImplementedError):
        os.posix_spawn(sys.executable, words, os.environ, setsid=True)  # ranks are killed by their groups
    os.set_inheritable(note_file, False)


def _one_dies(pids: set[int], seconds: float = NEIGHBOUR_SECONDS) -> bool:
    """Whether one of these processes is dead, or dies within some time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not all(map(runs, pids)):
            return True
        time.sleep(0.005)
    return False


def _end_watchers(pids: set[int]) -> None:
    """End the processes of this kind beside these ranks, and wait until they hold nothing any more."""
    found = set()
    for pid in {child for rank in pids for child in children(rank) or ()}:
        with suppress(OSError):
            if __file__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
                found.add(pid)
    for pid in found:
        _one_dies({pid})


def _close_all_but(kept: set[int]) -> list[int]:
    """Close what was inherited: of Hydra also the sockets of other ranks, whose ends it would not hear of.

    Returns: pipes, which stay: a rank may have redirected its output, and Hydra must not hear of its pipes before the
        socket.
    """
    pipes = []
    for number in set(map(int, os.listdir("/proc/self/fd"))) - kept:
        with suppress(OSError):
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                pipes.append(number)
            else:
                os.close(number)
    return pipes


def main() -> None:
    """Wait for the end of the rank, write the line if a signal was it, and let the starter hear of it in any case."""
    rank, pid, note_file = map(int, sys.argv[1:])
    socket = int(os.environ.get("PMI_FD", "2"))
    pipes = _close_all_but({1, 2, socket, note_file})
    try:
        _watch(rank, pid, note_file)
    finally:
        for descriptor in dict.fromkeys((socket, *pipes, 2, 1)):  # Hydra ends nobody where it hears of the socket last
            os.close(descriptor)


def _watch(rank: int, pid: int, note_file: int) -> None:
    before = memory_kills()
    try:
        watched, parent = os.pidfd_open(pid), int(stat_of(pid)[1])
    except (OSError, IndexError):  # it has ended, and the starter knows it
        return
    neighbours = set(children(parent) or ())
    select.select([watched], [], [])
    words, neighbours = stat_of(pid), neighbours.union(children(parent) or ()) - {pid}
    status = int(words[-1]) if words[0] == "Z" else 0  # else the starter was told first, and nobody knows any more
    number = status & 127
    alone = number == signal.SIGKILL and memory_kills() == before
    if not status or (alone and _one_dies(neighbours)):
        return
    if number and number not in FROM_OUTSIDE:
        phase, log = words_of(note_file)[:2]
        say(death_line(f"rank {rank} on host {HOST}", number, phase or "its start", log, before))
    _end_watchers(neighbours)


if __name__ == "__main__":
    main()
