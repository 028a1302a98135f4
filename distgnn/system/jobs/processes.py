"""Processes of this machine, as the kernel shows them: what they do, why one was killed, how those of a job are ended.

    python -I -S processes.py JOB FOLDER BEGAN      a process beside the launcher, which cleans up

The clean-up process ends the launcher's job when the launcher is killed. FOLDER is the launcher's, to be removed when
all is over, or empty. BEGAN is when the job began, in seconds. The launcher has the other end of standard input. It
writes a line "done" where it has ended the job itself.

Every process of a job on this machine (mpiexec, its proxies, ranks, what they start) has DISTGNN_JOB=JOB in its
environment, so it is found whoever its parent is by then: `mpiexec` puts each rank into a session of its own. On other
machines the proxies of mpiexec notice that it is gone, and ranks die with them. Shared memory of an MPI library is
known by its age: made since the job began, and mapped by nobody any more.

Nothing of ours is imported: a start takes some 20 ms.
"""

import array
import fcntl
import os
import signal
import socket
import stat
import sys
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

VARIABLE = "DISTGNN_JOB"
PR_SET_PDEATHSIG = 1
TO_ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # which some senders send to every process of a job
SECONDS = 10.0
READ_SECONDS = 4.0  # a launcher that reads nothing for longer does not hold the end up; below ABORT_SECONDS
SHARED = "/dev/shm"
SEGMENTS = ("mpich_shm_", "vader_segment.", "sm_segment.", "osc_rdma.", "Intel_MPI_")  # MPICH, Open MPI 4, 5, Intel MPI
LOOKS, LOOK_SECONDS = 3, 0.2  # before a segment counts as nobody's: it is made a moment before it is mapped
HOST = socket.gethostname()
MEANINGS: dict[int, str] = {
    signal.SIGSEGV: ": it read or wrote memory that is not its own (a fault of a compiled library, or of this program)",
    signal.SIGBUS: ": memory behind a mapped file is gone (a full /dev/shm or disk, a file that was cut meanwhile)",
    signal.SIGABRT: ": a library gave up, and may have said why above (no memory, a failed check)",
    signal.SIGALRM: ": MPI did not start within the limit (--timeout, a minute at least)",
}
PROC_GROUPS, GROUPS = "/proc/self/cgroup", "/sys/fs/cgroup"
LESS_MEMORY = "take more parts, --dtype bfloat16, --remat or fewer --hidden-feats"
REASON = "DISTGNN_REASON"  # a file that gets the reason too, for the exception in who called the ranks


def runs(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be collected does not."""
    return stat_of(pid)[0] not in ("Z", "X")


def stat_of(pid: int) -> list[str]:
    """The words of a process: its state, its parent, … its status at the end; state X where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X"]


def children(pid: int) -> list[int]:
    """Return the process ids whose parent is `pid`."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has just ended
            found += map(int, file.read_text().split())
    return found


def why_killed(number: int, before: tuple[int, int]) -> str:
    """What is known of the reason for a signal. Args: before: `memory_kills()` when the job began."""
    if number != signal.SIGKILL:
        return MEANINGS.get(number, "")
    group, machine = memory_kills()
    if group > before[0]:
        return f": the kernel ended it for memory (its control group's limit): {LESS_MEMORY}, or give it more"
    if machine > before[1]:
        return f": the kernel ended processes of this machine for memory: {LESS_MEMORY}"
    return ": not by the kernel for memory; another process sent it (a batch system at a limit, kill -9)"


def memory_kills() -> tuple[int, int]:
    """How many processes the kernel has ended for memory: of this process's control group, of the machine."""
    own = [_oom_kill(one / name) for one in control_groups()[:1] for name in ("memory.events", "memory.oom_control")]
    return max(own, default=0), _oom_kill(Path("/proc/vmstat"))


def control_groups(controller: str = "memory", proc: str = PROC_GROUPS, mounts: str = GROUPS) -> list[Path]:
    """Folders of this process's control groups for memory or "cpu", and of those around them (versions 1 and 2).

    Args: proc: the process's groups; mounts: where groups are. A container may see its own group as the root.
    """
    found: list[Path] = []
    with suppress(OSError):
        lines = [line.split(":", 2) for line in Path(proc).read_text().splitlines()]
        for _, controllers, path in (line for line in lines if len(line) == 3):
            if not controllers or controller in controllers.split(","):
                backwards = ",".join(reversed(controllers.split(",")))
                for mount in (controllers, backwards, controller) if controllers else ("", "unified"):
                    root = Path(mounts) / mount
                    below = root / path.lstrip("/")
                    found += [one for one in (below, *below.parents) if one.is_relative_to(root) and one.is_dir()]
    return list(dict.fromkeys(found))


def _oom_kill(path: Path) -> int:
    """The number after "oom_kill" in a file; 0 where there is none."""
    with suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def say(text: str, environment: Mapping[str, str] = os.environ) -> None:
    """One line on standard error, whole; also into the file that the environment of the ranks names."""
    with suppress(OSError):
        os.write(2, f"distgnn: error: {text}\n".encode(errors="backslashreplace"))
    with suppress(OSError, KeyError):
        with open(environment[REASON], "x", encoding="utf-8", errors="backslashreplace") as file:  # the first of them
            file.write(text)


def wait_until_read(seconds: float) -> None:
    """Wait until who reads this process's standard output and error has done so; only pipes are waited for."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # full, closed, none
            stream.flush()
    deadline = time.monotonic() + seconds
    while any(_unread(number) for number in (1, 2)) and time.monotonic() < deadline:
        time.sleep(0.002)


def _unread(number: int) -> int:
    """Bytes in a pipe; 0 where that is not known."""
    try:
        if not stat.S_ISFIFO(os.fstat(number).st_mode):
            return 0
        count = array.array("i", [0])
        fcntl.ioctl(number, termios.FIONREAD, count)
        return count[0]
    except OSError:
        return 0


def processes_of(job: str) -> list[int]:
    """Process ids of a job that still run on this machine, without this process."""
    mark, found = f"{VARIABLE}={job}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0") and runs(int(folder.name)):
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def end_job(job: str, seconds: float = 0.0) -> None:
    """End every process of a job, and those that they start meanwhile: politely, then after `seconds` for good."""
    if seconds:
        _send(job, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and processes_of(job):
        time.sleep(0.02)
    deadline = time.monotonic() + SECONDS
    while _send(job, signal.SIGKILL) and time.monotonic() < deadline:
        time.sleep(0.02)


def _send(job: str, number: int) -> int:
    """Send a signal to every process of a job; returns how many there are."""
    pids = processes_of(job)
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)
    return len(pids)


def remove_strays(since: float) -> None:
    """Remove segments of MPI libraries that this user has made since then, and that no process has mapped any more."""
    found = set()
    for path in Path(SHARED).glob("*"):
        with suppress(OSError):
            made = path.stat()
            if path.name.startswith(SEGMENTS) and made.st_ctime >= since and made.st_uid == os.geteuid():
                found.add(str(path))
    for look in range(LOOKS if found else 0):
        time.sleep(LOOK_SECONDS if look else 0.0)
        found.difference_update(*map(mapped_segments, Path("/proc").glob("[0-9]*/maps")))
    for segment in found:
        Path(segment).unlink(missing_ok=True)


def mapped_segments(maps: Path) -> set[str]:
    """Segments of an MPI library among the files of a /proc/PID/maps; a user's own files in /dev/shm are not."""
    try:
        lines = maps.read_text().splitlines()
    except OSError:
        return set()
    paths = {line[line.index(f" {SHARED}/") + 1 :] for line in lines if f" {SHARED}/" in line}
    found = {path for path in paths if not path.endswith(" (deleted)")}
    return {path for path in found if path.removeprefix(f"{SHARED}/").startswith(SEGMENTS)}


def die_with_parent(number: int = signal.SIGTERM) -> Callable[[], object]:
    """What has the kernel send its process a signal when the parent dies, however it dies."""
    import ctypes  # 10 ms; nothing is imported after the fork

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(PR_SET_PDEATHSIG, int(number))


def first_act_of_starter(deaf: bool) -> Callable[[], None]:
    """What starts ranks dies with its parent. Args: deaf: to signals that ranks get, too."""
    ask = die_with_parent(signal.SIGKILL)

    def act() -> None:
        ask()
        if deaf:  # a proxy of Hydra dies of them, and mpiexec of the second SIGINT
            signal.pthread_sigmask(signal.SIG_BLOCK, TO_ALL)

    return act


def clean_up(job: str, folder: str, began: float) -> None:
    """Wait for the end of the launcher; end its job, unless it has done so itself."""
    for number in TO_ALL:  # meant for the launcher
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.readline() == "done\n":  # not to the end of the pipe: a fork of the caller may hold it open
        return
    end_job(job)
    if folder:
        import shutil  # 10 ms

        shutil.rmtree(folder, ignore_errors=True)
    remove_strays(began)


if __name__ == "__main__":
    clean_up(sys.argv[1], sys.argv[2], float(sys.argv[3]))
