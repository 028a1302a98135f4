"""What a report says about the process and its libraries."""

import os
import platform
from importlib import metadata

import torch
from mpi4py import MPI

import distgnn
from distgnn.graph.cores import my_cores, ranges


def where_this_rank_runs() -> str:
    """Host, process, cores and threads in one line, for the rank's log."""
    return (
        f"host {platform.node()}, process {os.getpid()}, cores {ranges(my_cores())}, {torch.get_num_threads()} threads"
    )


def versions() -> dict[str, str]:
    """Versions that can change a number."""
    packages = {name: metadata.version(name) for name in ("torch", "numba", "numpy", "mpi4py")}
    library = MPI.Get_library_version().split("\n")[0].strip().strip("\x00")
    return {"distgnn": distgnn.__version__, "python": platform.python_version(), "mpi": library} | packages
