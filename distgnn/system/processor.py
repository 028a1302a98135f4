"""The processor: its name and generation, the cores that this process may use, and the share of each rank."""

import os
import platform
import sys
from pathlib import Path
from typing import Any

from distgnn.errors import InputError
from distgnn.system.jobs.processes import GROUPS, PROC_GROUPS, control_groups

USER_VARIABLES = ("DISTGNN_NUM_THREADS", "OMP_NUM_THREADS")
# By which OpenMP binds threads, each rank to the same cores: the first ones that it may run on.
BINDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
UNBOUND = ("false", "disabled", "none")


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
    """Return how many threads each of `num_ranks` ranks on this machine gets: the user's word, else equal shares."""
    return users_threads() or max(1, available_cores() // num_ranks)


def users_threads() -> int:
    """DISTGNN_NUM_THREADS, else OMP_NUM_THREADS; 0 without. Raises: InputError where it is no positive number."""
    for name in USER_VARIABLES:
        text = os.environ.get(name)
        if text:
            if not text.isdecimal() or not 0 < int(text) < 1 << 31:
                raise InputError(f"{name}={text}: expected a positive number of threads")
            return int(text)
    return 0


def binding() -> str:
    """The variable, with its value, that binds the threads of this process to cores; empty where none does."""
    if os.environ.get(BINDING[0], "").lower() == UNBOUND[0]:
        return ""
    found = ((name, os.environ.get(name, "")) for name in BINDING)
    return next((f"{name}={text}" for name, text in found if text and text.lower() not in UNBOUND), "")


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


# AMD's family and ranges of models (its processors are called EPYC or Ryzen in all generations).
GENERATIONS = {23: "Zen 2", 25: "Zen 3", 26: "Zen 5"}
OTHERS: dict[int, tuple[Any, str]] = {
    23: (range(0x30), "Zen"),
    25: ((*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0)), "Zen 4"),
}

# Linux on Arm gives no name, but numbers of the maker (0x41: Arm itself) and of the design.
ARM = {"0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2", "0xd4f": "Neoverse V2"}


def machine() -> dict[str, Any]:
    """What a reader needs to judge measured numbers."""
    return {"cpu": processor(), "cores": os.cpu_count(), "system": platform.platform()}


def processor() -> str:
    """As "AMD EPYC (Zen 4)" or "Neoverse V1"; the system's name alone where nothing more is known."""
    try:
        found = describe(Path("/proc/cpuinfo").read_text())
    except OSError:
        found = ""
    return found or platform.processor() or platform.machine()


def describe(cpuinfo: str) -> str:
    """The first processor of Linux's /proc/cpuinfo; empty where it has no name."""
    lines = [line.split(":", 1) for line in cpuinfo.split("\n\n")[0].splitlines() if ":" in line]
    facts = {name.strip(): value.strip() for name, value in lines}
    name, maker, part = (facts.get(key) for key in ("model name", "CPU implementer", "CPU part"))
    if name is None and maker is not None and part is not None:
        name = ARM[part] if maker == "0x41" and part in ARM else f"Arm, maker {maker}, part {part}"
    generation = None
    if facts.get("vendor_id") == "AuthenticAMD":
        family, model = (int(facts.get(key, "0")) for key in ("cpu family", "model"))
        models, other = OTHERS.get(family, ((), None))
        generation = other if model in models else GENERATIONS.get(family)
    return f"{name or ''} ({generation})" if generation is not None else name or ""
