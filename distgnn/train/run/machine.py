"""What a report says about the process and its libraries."""

import os
import platform
from importlib import metadata

from mpi4py import MPI

import distgnn
from distgnn.config import num_threads


def where_this_rank_runs() -> str:
    """Host, process, cores and threads in one line, for the rank's log."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return f"host {platform.node()}, process {os.getpid()}, cores {ranges(cores)}, {num_threads()} threads"


def ranges(numbers: list[int]) -> str:
    """Ascending whole numbers in short: [0, 1, 2, 8] is "0-2,8"."""
    pieces: list[list[int]] = []
    for number in numbers:
        if pieces and number == pieces[-1][-1] + 1:
            pieces[-1][1:] = [number]
        else:
            pieces.append([number])
    return ",".join("-".join(str(end) for end in piece) for piece in pieces)


def versions() -> dict[str, str]:
    """Versions that can change a number."""
    packages = {name: metadata.version(name) for name in ("torch", "numba", "numpy", "mpi4py")}
    library = MPI.Get_library_version().split("\n")[0].strip().strip("\x00")
    return {"distgnn": distgnn.__version__, "python": platform.python_version(), "mpi": library} | packages
