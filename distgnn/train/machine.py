"""What a report says about the process and its libraries."""

import platform
import resource
import sys
from importlib import metadata

from mpi4py import MPI

import distgnn


def peak_rss_bytes() -> int:
    """Largest resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def versions() -> dict[str, str]:
    """Versions that can change a number."""
    packages = {name: metadata.version(name) for name in ("torch", "numba", "numpy", "mpi4py")}
    library = MPI.Get_library_version().split("\n")[0].strip().strip("\x00")
    return {"distgnn": distgnn.__version__, "python": platform.python_version(), "mpi": library} | packages
