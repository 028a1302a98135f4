"""A small process beside the launcher that ends the launcher's job when the launcher is killed.

    python -I -S job_cleanup.py JOB        reads lines from the launcher; the pipe's end is the launcher's

    /dev/shm/mpich_…     shared memory of a rank, or a folder of the launcher, to be removed when all is over
    done                 the launcher has ended the job itself: nothing is left to do

Every process of a job on this machine (mpiexec, its proxies, ranks, what they start) has DISTGNN_JOB=JOB in its
environment, so it is found whoever its parent is by then. Shared memory that the launcher had not told of yet is known
by its age: made since this process began, and mapped by nobody any more. On other machines the proxies of mpiexec
notice that it is gone, and ranks die with them (parent_death.py).

Nothing of ours is imported: a start takes some 20 ms.
"""

import os
import signal
import sys
import time
from pathlib import Path

VARIABLE = "DISTGNN_JOB"
SECONDS = 10.0
SEGMENTS = "/dev/shm/mpich_shm_"
OTHER_LIBRARIES = ("vader_segment.", "sm_segment.", "osc_rdma.", "Intel_MPI_")  # Open MPI 4 and 5, Intel MPI
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
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def end_job(job: str, seconds: float = SECONDS) -> None:
    """End every process of a job, and those that they start meanwhile."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(job)) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.02)


def remove_strays(since: float) -> None:
    """Remove segments of MPICH that this user has made since then, and that no process has mapped any more."""
    found = _segments(since)
    for look in range(LOOKS if found else 0):
        time.sleep(LOOK_SECONDS if look else 0.0)
        found -= _mapped()
    for segment in found:
        Path(segment).unlink(missing_ok=True)


def _segments(since: float) -> set[str]:
    found = set()
    for path in Path(SEGMENTS).parent.glob(f"{Path(SEGMENTS).name}*"):
        try:
            made = path.stat()
        except OSError:
            continue
        if made.st_ctime >= since and made.st_uid == os.geteuid():
            found.add(str(path))
    return found


def _mapped() -> set[str]:
    return {path for maps in Path("/proc").glob("[0-9]*/maps") for path in mapped_segments(maps)}


def mapped_segments(maps: Path) -> set[str]:
    """Segments of an MPI library among the files of a /proc/PID/maps; a user's own files in /dev/shm are not."""
    try:
        lines = maps.read_text().splitlines()
    except OSError:
        return set()
    folder, _, ours = SEGMENTS.rpartition("/")
    names = (ours, *OTHER_LIBRARIES)
    paths = {line[line.index(f" {folder}/") + 1 :] for line in lines if f" {folder}/" in line}
    found = {path for path in paths if not path.endswith(" (deleted)")}
    return {path for path in found if path.removeprefix(f"{folder}/").startswith(names)}


def main() -> None:
    """Wait for the launcher's end."""
    left, began = [], time.time()
    for line in sys.stdin:
        if line == "done\n":
            return
        left.append(Path(line.rstrip("\n")))
    end_job(sys.argv[1])
    for path in left:
        if path.is_dir():
            import shutil  # 10 ms

            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    remove_strays(began)


if __name__ == "__main__":
    main()
