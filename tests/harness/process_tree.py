"""Processes below another one: who they are, and their end."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from distgnn.system.jobs.processes import runs, stat_of


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


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def stop_tree(process: subprocess.Popen[Any], seconds: float) -> None:
    """End `process` and all its descendants: politely, then after `seconds` for good."""
    pids = descendants(process.pid) if process.poll() is None else []
    _send([process.pid, *pids] if process.poll() is None else [], signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (process.poll() is None or any(map(runs, pids))):
        time.sleep(0.02)
    _send(filter(runs, pids), signal.SIGKILL)
    if process.poll() is None:
        process.kill()
    process.wait()
