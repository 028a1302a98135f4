"""Numbers with units, as people read and write them, and how much memory this process takes and has taken at most."""

from __future__ import annotations

import ctypes
import re
import resource
import sys
from pathlib import Path
from typing import NamedTuple

from distgnn.errors import InputError

UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
UNITS |= {f"{unit}i": 1024 ** (power + 1) for power, unit in enumerate("kmgt")}


def parse_bytes(text: str | int) -> int:
    """Bytes from "8GB", "512 MiB", "600M", or a plain number. Raises: InputError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(text), re.ASCII | re.IGNORECASE)
    try:
        count = 0 if match is None else int(float(match[1]) * UNITS[match[2].lower()])
    except (KeyError, OverflowError):
        count = 0
    if count < 1:
        raise InputError(f"memory is {str(text)!r}: expected a size such as 8GB or 512MiB")
    return count


def peak_rss_bytes() -> int:
    """Largest resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class Resident(NamedTuple):
    """Resident memory of this process now, bytes; `anonymous`: what no file stands behind."""

    total: int
    anonymous: int


def resident(exact: bool = False) -> Resident:
    """Resident memory now; exactly: by the page table, some milliseconds for a gigabyte."""
    if exact and Path("/proc/self/smaps_rollup").exists():
        found = dict(line.split()[:2] for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
        return Resident(1024 * int(found["Rss:"]), 1024 * int(found["Anonymous:"]))
    try:
        _, total, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    except OSError:
        return Resident(peak_rss_bytes(), peak_rss_bytes())
    page = resource.getpagesize()
    return Resident(page * total, page * (total - shared))


def peak_resident_bytes() -> int:
    """Largest resident memory of this program (VmHWM): without what the process was before it became this program."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return peak_rss_bytes()


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of malloc.h: bytes."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks")]
    _fields_ += [(name, ctypes.c_size_t) for name in ("fsmblks", "uordblks", "fordblks", "keepcost")]


def malloc_bytes() -> int:
    """What malloc has given out and nobody has freed; 0 where the C library does not say (glibc before 2.33)."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError, TypeError):
        return 0
    ask.restype = _Mallinfo
    found = ask()
    return int(found.uordblks + found.hblkhd)


def human_bytes(count: float) -> str:
    """Bytes with a unit of 1000: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1000
    return f"{count:.3g} TB"


def human_count(count: float) -> str:
    """A number with a unit of 1000: 1.5 M."""
    for unit in ("", " k", " M"):
        if count < 1000:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} G"


def human_seconds(seconds: float) -> str:
    """Seconds with a unit: 12.3 ms, 4.56 s, 3 min 20 s."""
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 100 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def human_share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"
