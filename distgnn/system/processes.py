"""Ending a process with everything it started: `mpiexec`, its proxies, the ranks and their shared memory.

`mpiexec` puts each rank into a session of its own, so a process group reaches none of them: the tree is walked
through /proc. Where there is no /proc (macOS) only the process's own group is ended.
"""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from distgnn.system.jobs.job_cleanup import mapped_segments, runs


def children(pid: int) -> list[int] | None:
    """Return the process ids whose parent is `pid`; None where the system does not say."""
    try:
        files = list(Path(f"/proc/{pid}/task").glob("*/children"))
        return [int(word) for file in files for word in file.read_text().split()] if files else None
    except OSError:
        return None


def descendants(pid: int) -> list[int]:
    """Return the process ids below `pid`, parents before children."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = list(children.get(pid, []))
    for child in found:  # grows while it is walked
        found.extend(children.get(child, []))
    return found


def stop_tree(process: subprocess.Popen[Any], seconds: float) -> None:
    """End `process` and all its descendants: politely, then after `seconds` for good; remove their shared memory."""
    pids = descendants(process.pid) if process.poll() is None else []
    segments = {segment for pid in pids for segment in shared_memory(pid)}
    _signal(process.pid, signal.SIGTERM, running=process.poll() is None)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (process.poll() is None or any(map(runs, pids))):
        time.sleep(0.02)
    for pid in pids:
        _signal(pid, signal.SIGKILL, running=runs(pid))
    if process.poll() is None:
        process.kill()
    process.wait()
    for segment in segments:
        Path(segment).unlink(missing_ok=True)


def _signal(pid: int, number: int, running: bool) -> None:
    if running:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def shared_memory(pid: int) -> set[str]:
    """Return the shared memory segments of the MPI library that the process has mapped."""
    return mapped_segments(Path(f"/proc/{pid}/maps"))
