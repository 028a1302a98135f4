"""Cores that this process may use, and the share of each rank."""

import os
import sys
from pathlib import Path


def available_cores() -> int:
    """Return the cores this process may use: its affinity mask, cut by the control group's quota where there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, int(core_quota())))


def threads_per_rank(num_ranks: int) -> int:
    """Return how many threads each of `num_ranks` ranks on this machine gets: equal shares, at least one."""
    return max(1, available_cores() // num_ranks)


def core_quota() -> float:
    """Return the smallest CPU quota, in cores, of the control groups (version 2) around this process."""
    try:
        group = Path("/proc/self/cgroup").read_text().strip().splitlines()[-1].split("::", 1)[1].lstrip("/")
    except (OSError, IndexError):
        return float(sys.maxsize)
    quota = float(sys.maxsize)
    folder = Path("/sys/fs/cgroup")
    for name in ("", *Path(group).parts):
        folder = folder / name
        try:
            limit, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            continue
        if limit != "max":
            quota = min(quota, int(limit) / int(period))
    return quota
