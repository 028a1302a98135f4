"""Who names a rank that is killed, or leaves before MPI began: a process beside each rank.

    python -I -S death_watch.py RANK PID NOTE_FD

The first import of distgnn in a rank starts this (own_rank.py). It holds the rank's output and its socket to the
starter (PMI_FD), and a page of memory in which the rank notes what it does. When the rank has ended, and others need
it, this process

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
import select
import signal
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

if not __package__:  # a program of its own: the package is not imported, what it needs stands beside it
    sys.path.append(os.path.dirname(__file__))
    sys.modules["distgnn.system.jobs.processes"] = importlib.import_module("processes")

from distgnn.system.jobs.processes import (
    HOST,
    TO_ALL,
    children,
    memory_kills,
    program_of,
    runs,
    say,
    stat_of,
    why_killed,
)

NOTE_BYTES = 1024
NOTE_VARIABLE = "DISTGNN_NOTE_FD"
# The stage of a rank, in its note: it has ended without MPI, others need it, nobody needs it any more.
EARLY, JOINED, ENDS = "early", "joined", "ends"
SPOKEN = "left"  # how the note of a rank begins that has said itself that it leaves
OWN_CODE = 1  # of a job whose first rank to leave had no exit code of its own
NEIGHBOUR_SECONDS = 0.5
LOOK_SECONDS = 0.5
GRACE_SECONDS = 5.0  # for the others, when a rank fails before MPI_Init: they may be about to say the same
FROM_OUTSIDE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


def start_death_watch(rank: int, note_file: int) -> None:
    """Start the process for this rank, which reads what the rank does from `note_file`. Linux 5.3 or later."""
    if not hasattr(os, "pidfd_open") or not hasattr(os, "posix_spawn"):
        return
    words = [sys.executable, "-I", "-S", __file__, str(rank), str(os.getpid()), str(note_file)]
    os.set_inheritable(note_file, True)
    with suppress(OSError, NotImplementedError):
        os.posix_spawn(sys.executable, words, os.environ, setsid=True)  # ranks are killed by their groups
    os.set_inheritable(note_file, False)


def words_of(note_file: int) -> list[str]:
    """From a rank's page of memory its stage, what it does, and the path of its log: at least three texts."""
    text = os.pread(note_file, NOTE_BYTES, 0).split(b"\0")[0]
    lines = text.decode(errors="replace").split("\n")
    return [*("".join(filter(str.isprintable, line)).rstrip(",") for line in lines), "", ""]


def _one_dies(pids: set[int], seconds: float) -> bool:
    """Whether one of these processes is dead, or dies within some time."""
    deadline = time.monotonic() + seconds
    while all(map(runs, pids)):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True


def _wait_in_mpi(pids: set[int]) -> bool:
    """Whether one of these processes comes to need a rank that has never begun MPI; the others have some time first."""
    deadline = time.monotonic() + GRACE_SECONDS
    while waiting := [pid for pid in pids if runs(pid)]:
        time.sleep(0.05 if time.monotonic() < deadline else LOOK_SECONDS)
        for pid in waiting if time.monotonic() >= deadline else ():
            with suppress(OSError):
                if b"/libmpi" in Path(f"/proc/{pid}/maps").read_bytes():
                    return True
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
        _one_dies({pid}, NEIGHBOUR_SECONDS)


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
    for number in (*TO_ALL, signal.SIGUSR1):  # meant for the rank
        signal.signal(number, signal.SIG_IGN)
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
    poll = select.poll()  # `select.select` stops at 1,024 descriptors
    poll.register(watched, select.POLLIN)
    poll.poll()
    words, neighbours = stat_of(pid), neighbours.union(children(parent) or ()) - {pid}
    stage, phase, log = words_of(note_file)[:3]
    status = int(words[-1]) if words[0] == "Z" else None  # None: collected
    number, code = (status or 0) & 127, (status or 0) >> 8
    told = False
    if not number and stage != JOINED:
        if stage != EARLY or not _wait_in_mpi(neighbours):
            return  # nobody waits for it
        told = code != 0  # by itself, as it failed
    elif number in (0, signal.SIGKILL):
        waits = number and memory_kills() == before and program_of(parent).startswith("hydra")
        told = _one_dies(neighbours, NEIGHBOUR_SECONDS if waits else 0.0)
    if not told and not phase.startswith(SPOKEN):
        if line := _line(f"rank {rank}", stage, number, status, phase or "its start", log, before):
            say(line)
    if stage != ENDS and (not told or stage == EARLY or "SLURM_STEP_ID" in os.environ):
        _end_watchers(neighbours)
        word = f"cmd=abort exitcode={128 + number if number else code or OWN_CODE}\n"
        for socket in sockets:
            with suppress(OSError):
                os.write(socket, word.encode())


def _line(who: str, stage: str, number: int, status: int | None, phase: str, log: str, before: tuple[int, int]) -> str:
    """What to say of a rank that has ended by a signal, or with a status; empty: its user did it."""
    if number in FROM_OUTSIDE:
        return ""
    if number:
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        where = f"; its log is {log}" if log else ""
        return f"{who} on host {HOST} was killed by {name} in {phase}{why_killed(number, before)}{where}"
    if stage == EARLY:
        return f"{who} left before it started MPI, the others wait for it in MPI_Init"
    how = "by a signal or os._exit," if status is None else f"with exit code {status >> 8} and"
    return f"{who} on host {HOST} ended {how} without MPI_Finalize: it left in {phase}"


if __name__ == "__main__":
    main()
