"""Who names a rank that is killed where no launcher of ours does: a process beside each rank.

    python -I -S death_watch.py RANK PID NOTE_FD

A user's own `mpiexec` or srun starts ranks; the first import of distgnn in a rank starts this (own_rank.py). It holds
the rank's output and its socket to the starter (PMI_FD). When the rank has ended, and others need it, this process

1. writes the line,
2. ends the watchers of the neighbours, so that they do not name these,
3. sends the starter MPICH's word for MPI_Abort, and closes what it holds. Slurm would let the others wait for ever.

Open MPI and Slurm may collect a process before anybody reads its status. Then the line does not name the signal.
A starter that is told to end all ranks sends them SIGKILL as well. Then a neighbour is dead, with Hydra within
NEIGHBOUR_SECONDS, and nothing is said.

Nothing else of ours is imported: a start takes some 20 ms.
"""

import importlib
import os
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

from distgnn.system.jobs.job_cleanup import children, program_of, runs, stat_of
from distgnn.system.jobs.local_mpiexec import (
    ENDS,
    HOST,
    JOINED,
    OWN_CODE,
    SPOKEN,
    death_line,
    memory_kills,
    readable,
    say,
    words_of,
)

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
    while all(map(runs, pids)):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True


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
    """Wait for the end of the rank, name it where others need it, and let the starter know."""
    rank, pid, note_file = map(int, sys.argv[1:])
    sockets = [int(number) for number in [os.environ.get("PMI_FD", "")] if number.isdigit()]  # one, or none
    pipes = _close_all_but({1, 2, note_file, *sockets})
    try:
        _watch(rank, pid, note_file, sockets)
    finally:
        # Hydra ends nobody where it reads the end of the socket last.
        for descriptor in dict.fromkeys((*sockets, *pipes, 2, 1)):
            os.close(descriptor)


def _watch(rank: int, pid: int, note_file: int, sockets: list[int]) -> None:
    before = memory_kills()
    try:
        watched, parent = os.pidfd_open(pid), int(stat_of(pid)[1])
    except (OSError, IndexError):  # it has ended, and the starter knows it
        return
    neighbours = set(children(parent) or ())
    readable([watched])
    words, neighbours = stat_of(pid), neighbours.union(children(parent) or ()) - {pid}
    stage, phase, log = words_of(note_file)[:3]
    status = int(words[-1]) if words[0] == "Z" else None  # None: collected
    number, code = (status or 0) & 127, (status or 0) >> 8
    if not number and stage != JOINED:
        return  # nobody waits for it
    told = False
    if number in (0, signal.SIGKILL):
        waits = number and memory_kills() == before and program_of(parent).startswith("hydra")
        told = _one_dies(neighbours, NEIGHBOUR_SECONDS if waits else 0.0)
    who = f"rank {rank} on host {HOST}"
    if told or phase.startswith(SPOKEN):
        pass
    elif not number:
        how = "by a signal or os._exit," if status is None else f"with exit code {code} and"
        say(f"{who} ended {how} without MPI_Finalize: it left in {phase or 'its start'}")
    elif number not in FROM_OUTSIDE:
        say(death_line(who, number, phase or "its start", log, before))
    if stage != ENDS and (not told or "SLURM_STEP_ID" in os.environ):
        _end_watchers(neighbours)
        word = f"cmd=abort exitcode={128 + number if number else code or OWN_CODE}\n"
        for socket in sockets:
            with suppress(OSError):
                os.write(socket, word.encode())


if __name__ == "__main__":
    main()
