"""Memory in bytes: as people write it, and what this process has taken at most."""

from __future__ import annotations

import re
import resource
import sys

from distgnn.errors import InputError

UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
UNITS |= {f"{unit}i": 1024 ** (power + 1) for power, unit in enumerate("kmgt")}


def parse_bytes(text: str | int) -> int:
    """Bytes from "8GB", "512 MiB", "600M", or a plain number.

    Raises: InputError.
    """
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
