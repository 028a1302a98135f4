"""What a report says about the process and its libraries."""

import os
import platform
from importlib import metadata
from typing import Any

import torch
from mpi4py import MPI

import distgnn
from distgnn.comm import check_same
from distgnn.graph.cores import my_cores, ranges


def where_this_rank_runs() -> str:
    """Host, process, cores and threads in one line, for the rank's log."""
    return (
        f"host {platform.node()}, process {os.getpid()}, cores {ranges(my_cores())}, {torch.get_num_threads()} threads"
    )


def versions() -> dict[str, str]:
    """Versions that can change a number."""
    library = MPI.Get_library_version().split("\n")[0].strip().strip("\x00")
    packages = {name: metadata.version(name) for name in ("torch", "numba", "numpy", "mpi4py")}
    return {"distgnn": distgnn.__version__, "python": platform.python_version(), "mpi": library} | packages


def check_program(comm: Any) -> None:
    """Raise RunError on every rank for other versions of the program, its libraries or MPI's on one. Collective."""
    check_same(comm, versions(), "install the same versions on every machine")
