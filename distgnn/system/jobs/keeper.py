"""The parent of each rank that the launcher starts: it ends with the starter, and says how its rank ended.

    python -I -S keeper.py PROGRAM ARGUMENTS …

This process dies with its parent, the proxy that `mpiexec` has on the machine (of Open MPI: its daemon), and the rank
with this process. Else it trained on, unsupervised. The kernel sees to it: the request outlives `execve`; it reaches a
stopped process, and one that holds the interpreter's lock.

Starters end ranks by their process groups, and so this process, too. Hence what it lives to see is news. Where the rank
has ended and others need it, this process writes the line, and sends MPICH's word for MPI_Abort. It also ends a rank
that somebody has stopped for the whole of --timeout: where all are stopped, none is left to notice.

What the rank does is read from a page of memory that both have (`note` in rank_log.py), which outlives the rank.
Nothing else of ours is imported: a start takes some 20 ms. Ranks that a user's own `mpiexec` or srun starts have none.
"""

import importlib
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

if not __package__:  # a program of its own: the package is not imported, what it needs stands beside it
    sys.path.append(os.path.dirname(__file__))
    sys.modules["distgnn.system.jobs.processes"] = importlib.import_module("processes")

from distgnn.system.jobs.processes import (
    HOST,
    READ_SECONDS,
    TO_ALL,
    children,
    die_with_parent,
    memory_kills,
    runs,
    say,
    stat_of,
    wait_until_read,
    why_killed,
)

NOTE_BYTES = 1024
NOTE_VARIABLE = "DISTGNN_NOTE_FD"
OWNER = "DISTGNN_RANK_PID"  # the process id of the rank, and the rank: in what it starts, too
# The stage of a rank, in its note: it has ended without MPI, others need it, nobody needs it any more.
EARLY, JOINED, ENDS = "early", "joined", "ends"
OWN_CODE = 1  # of a job whose first rank to leave had no exit code of its own
HUNG = 124  # exit code of a job in which nothing moves, as of timeout(1)
STARTER_SECONDS = 0.3  # in which a starter that ends a rank ends this process, too
LOOK_SECONDS = 1.0
OVER = "distgnn-over"  # the name of this process once its rank has ended: before, its rank may be about to begin
GRACE_SECONDS = 5.0  # for the others, when a rank fails before MPI_Init: they may be about to say the same
FROM_OUTSIDE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


def main(program: list[str]) -> int:
    """Run the rank, and return its exit code, or 128 + the signal that has ended it."""
    die_with_parent(signal.SIGKILL)()
    if os.getppid() == 1:  # it died before it was asked
        return 1
    os.environ.pop(OWNER, None)  # of a rank that has started this job
    os.environ.pop(NOTE_VARIABLE, None)
    note_file = -1
    if hasattr(os, "memfd_create"):
        note_file = os.memfd_create("distgnn-note", 0)
        os.ftruncate(note_file, NOTE_BYTES)
        os.environ[NOTE_VARIABLE] = str(note_file)
    before, here = memory_kills(), os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(program, here)
    for number in (*TO_ALL, signal.SIGUSR1):  # meant for the rank
        signal.signal(number, signal.SIG_IGN)
    status, stopped = _wait(pid, note_file)
    with suppress(OSError):
        Path("/proc/self/comm").write_text(OVER)
    return _over(status, stopped, _words_of(note_file), before)


def _become(program: list[str], parent: int) -> None:
    die_with_parent(signal.SIGKILL)()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TO_ALL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and programs inherit that
    try:
        if os.getppid() == parent:
            os.execvp(program[0], program)
    except OSError as error:
        os.write(2, f"distgnn: error: {program[0]} could not be started: {error.strerror}\n".encode())
    os._exit(1)


def _words_of(note_file: int) -> list[str]:
    """From a rank's page of memory its stage, for how long it may be stopped, what it does, and the path of its log."""
    text = os.pread(note_file, NOTE_BYTES, 0).split(b"\0")[0] if note_file >= 0 else b""
    lines = text.decode(errors="replace").split("\n")
    return [*("".join(filter(str.isprintable, line)).rstrip(",") for line in lines), "", "", ""][:4]


def _wait(pid: int, note_file: int) -> tuple[int, float]:
    """Wait for the end of the rank: its status, and for how many seconds it had been stopped, where that ended it.

    Notes: looks are counted, not seconds: where a whole job was stopped, this process was so, too.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    looks, ended = 0, 0.0
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status, ended
        looks = looks + 1 if stat_of(pid)[0] == "T" else 0
        limit = _words_of(note_file)[1] if looks else ""
        if limit and looks * LOOK_SECONDS > float(limit):
            ended = float(limit)
            os.kill(pid, signal.SIGKILL)
        signal.sigtimedwait([signal.SIGCHLD], LOOK_SECONDS)


def _wait_in_mpi(grace: float) -> bool:
    """Whether another rank of this machine comes to need one that has left; they have some seconds first."""
    deadline, parent = time.monotonic() + grace, os.getppid()
    while others := [pid for pid in children(parent) if _keeps(pid, parent)]:
        time.sleep(0.05 if time.monotonic() < deadline else LOOK_SECONDS)
        for pid in (rank for one in others for rank in children(one)) if time.monotonic() >= deadline else ():
            with suppress(OSError):
                if b"/libmpi" in Path(f"/proc/{pid}/maps").read_bytes():
                    return True
    return False


def _keeps(pid: int, starter: int) -> bool:
    """Is it the parent of a rank that has not ended, or forked to become one? A starter has others, as ssh."""
    with suppress(OSError):
        command, of_starter = (Path(f"/proc/{one}/cmdline").read_bytes() for one in (pid, starter))
        ours = not command or os.fsencode(__file__) in command or command == of_starter  # empty: within execve
        return ours and runs(pid) and Path(f"/proc/{pid}/comm").read_text().strip() != OVER
    return False


def _is_needed(stage: str, number: int, code: int) -> bool:
    """Do others wait for a rank that has ended, by a signal or with a code?"""
    if number or stage in (JOINED, ENDS):
        return stage != ENDS
    if stage == EARLY:
        return _wait_in_mpi(GRACE_SECONDS)
    return code > 0 and _wait_in_mpi(0.0)  # by os._exit: nothing was noted, and it may have begun MPI


def _over(status: int, stopped: float, words: list[str], before: tuple[int, int]) -> int:
    """Name the rank where others need it, and let the starter know. Returns: the exit code."""
    stage, _, phase, log = words
    number, code = status & 127, status >> 8
    if not _is_needed(stage, number, code):
        return 128 + number if number else code
    if number in (0, signal.SIGKILL) and not stopped:
        time.sleep(STARTER_SECONDS)
    numbers = (os.environ.get(name, "") for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"))
    rank = next((text for text in numbers if text.isdigit()), "0")
    who, where = f"rank {rank} on host {HOST}", phase or "its start"
    if stopped:
        say(f"{who} was stopped for {stopped:g} s in {where}")
    elif number and number not in FROM_OUTSIDE:  # its user did it
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        log = f"; its log is {log}" if log else ""
        say(f"{who} was killed by {name} in {where}{why_killed(number, before)}{log}")
    elif stage == EARLY and not status:  # else it has failed, and has said so
        say(f"rank {rank} left before it started MPI, the others wait for it in MPI_Init")
    elif not number and stage != EARLY:
        left = f": it left in {where}" if stage else ""
        say(f"{who} ended with exit code {code} and without MPI_Finalize{left}")
    wait_until_read(READ_SECONDS)  # Hydra may hear of the end first, and then shows no line any more
    code = HUNG if stopped else 128 + number if number else code or OWN_CODE
    with suppress(OSError, ValueError, KeyError):
        os.write(int(os.environ["PMI_FD"]), f"cmd=abort exitcode={code}\n".encode())
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
