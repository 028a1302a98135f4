"""A small process beside the launcher that ends the launcher's job when the launcher is killed.

    python -I -S job_cleanup.py JOB FOLDER BEGAN

FOLDER is the launcher's, to be removed when all is over, or empty. BEGAN is when the job began, in seconds. The
launcher has the other end of standard input. It writes a line "done" where it has ended the job itself.

Every process of a job on this machine (mpiexec, its proxies, ranks, what they start) has DISTGNN_JOB=JOB in its
environment, so it is found whoever its parent is by then. Shared memory of an MPI library is known by its age: made
since the job began, and mapped by nobody any more. On other machines the proxies of mpiexec notice that it is gone, and
ranks die with them (parent_death.py).

`mpiexec` puts each rank into a session of its own, so a process group reaches none of them: a launcher that ends its
job itself walks the tree through /proc. Where there is no /proc (macOS) only the process itself is ended.

Nothing of ours is imported: a start takes some 20 ms.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

VARIABLE = "DISTGNN_JOB"
SECONDS = 10.0
SHARED = "/dev/shm"
SEGMENTS = ("mpich_shm_", "vader_segment.", "sm_segment.", "osc_rdma.", "Intel_MPI_")  # MPICH, Open MPI 4, 5, Intel MPI
LOOKS, LOOK_SECONDS = 3, 0.2  # before a segment counts as nobody's: it is made a moment before it is mapped


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


def runs(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be collected does not."""
    return stat_of(pid)[0] not in ("Z", "X")


def cpu_ticks(pid: int) -> int | None:
    """CPU time of a process that sleeps; None of one that would run, is stopped or has ended."""
    words = stat_of(pid)
    return int(words[11]) + int(words[12]) if words[0] in ("S", "D") else None


def stat_of(pid: int) -> list[str]:
    """The words of a process: its state, its parent, … its status at the end; state X where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X"]


def program_of(pid: int) -> str:
    """The name of the program that a process runs; empty where that is not known."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def end_job(job: str, seconds: float = SECONDS) -> None:
    """End every process of a job, and those that they start meanwhile."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(job)) and time.monotonic() < deadline:
        _send(left, signal.SIGKILL)
        time.sleep(0.02)


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def children(pid: int) -> list[int] | None:
    """Return the process ids whose parent is `pid`; None where the system does not say."""
    found: list[int] | None = None
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            found = found or []
            with suppress(OSError):  # a thread that has just ended
                found += map(int, file.read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """Return the process ids below `pid`, parents before children."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        _, *others = stat_of(int(folder.name))
        if others:
            children.setdefault(int(others[0]), []).append(int(folder.name))
    found = list(children.get(pid, []))
    for child in found:  # grows while it is walked
        found.extend(children.get(child, []))
    return found


def stop_tree(process: "subprocess.Popen[Any]", seconds: float) -> None:
    """End `process` and all its descendants: politely, then after `seconds` for good."""
    pids = descendants(process.pid) if process.poll() is None else []
    _send([process.pid] if process.poll() is None else [], signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (process.poll() is None or any(map(runs, pids))):
        time.sleep(0.02)
    _send(filter(runs, pids), signal.SIGKILL)
    if process.poll() is None:
        process.kill()
    process.wait()


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


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # meant for the launcher, sent to every process
        signal.signal(number, signal.SIG_IGN)
    job, folder, began = sys.argv[1:]
    if sys.stdin.readline() == "done\n":  # not to the end of the pipe: a fork of the caller may hold it open
        return
    end_job(job)
    if folder:
        import shutil  # 10 ms

        shutil.rmtree(folder, ignore_errors=True)
    remove_strays(float(began))


if __name__ == "__main__":
    main()
