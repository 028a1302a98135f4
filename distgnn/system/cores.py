"""Cores that this process may use, and the share of each rank."""

import os
import sys
from pathlib import Path

from distgnn.system.jobs.local_mpiexec import GROUPS, PROC_GROUPS, control_groups


def available_cores() -> int:
    """Return the cores this process may use: its affinity mask, cut by the control group's quota where there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(core_quota())))


def available_sockets() -> int:
    """Return the processor sockets that this process has cores of; 1 where the system does not say."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    files = (Path(f"/sys/devices/system/cpu/cpu{core}/topology/physical_package_id") for core in cores)
    try:
        sockets = {file.read_text() for file in files}
    except OSError:
        return 1
    return max(1, min(len(sockets), available_cores()))


def threads_per_rank(num_ranks: int) -> int:
    """Return how many threads each of `num_ranks` ranks on this machine gets: equal shares, at least one."""
    return max(1, available_cores() // num_ranks)


def core_quota(proc: str = PROC_GROUPS, mounts: str = GROUPS) -> float:
    """Return the smallest CPU quota, in cores, of the control groups around this process. Args: as `control_groups`."""
    return min(map(_quota, control_groups("cpu", proc, mounts)), default=float(sys.maxsize))


def _quota(group: Path) -> float:
    """Cores that one control group may use; many without a limit."""
    try:
        words = (group / "cpu.max").read_text().split()
    except OSError:
        try:
            words = [(group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period")]
        except OSError:
            return float(sys.maxsize)
    try:
        limit, period = int(words[0]), int(words[1])
    except (ValueError, IndexError):
        return float(sys.maxsize)  # "max"
    return limit / period if limit > 0 and period > 0 else float(sys.maxsize)
