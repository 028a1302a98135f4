"""The start of MPI, so that a network that cannot be used is an error of ours.

MPI_Init of MPICH ends the process where UCX or OFI finds no transport, with a stack of MPICH's own. A session returns
an error instead. It opens the transports, and MPI_Init, which comes next, finds them open (2 ms more).
"""

import atexit
import os
import sys
from pathlib import Path
from typing import Any

from distgnn.errors import RunError, on_all_ranks
from distgnn.system.jobs.local_mpiexec import SPOKEN
from distgnn.system.jobs.own_rank import under_mpi
from distgnn.system.jobs.rank_log import note

# What chooses a transport, and a value that every machine can use.
CHOICES = {"UCX": ("UCX_TLS", "tcp,sm,self"), "OFI": ("FI_PROVIDER", "tcp")}
NETMOD = "MPIR_CVAR_CH4_NETMOD"


def start_mpi() -> Any:
    """Return `mpi4py.MPI`, initialised with threads; one that is imported already is left as it is.

    Collective: yes, as `MPI_Init` is.

    Raises: RunError where MPICH finds no transport; names the variable that chooses one, and what to set.
    """
    if "mpi4py.MPI" in sys.modules:
        return sys.modules["mpi4py.MPI"]
    import mpi4py

    ours = bool(mpi4py.rc.initialize)  # a user's own choice stays
    mpi4py.rc.initialize = False
    from mpi4py import MPI

    if not ours or MPI.Is_initialized():
        return MPI
    session = _session(MPI)
    MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if session is not None:
        session.Finalize()
    if not under_mpi():  # of a rank own_rank.py sees to the end
        atexit.register(_finalize, MPI, os.getpid())
    return MPI


def _finalize(mpi: Any, pid: int) -> None:
    if os.getpid() == pid and not mpi.Is_finalized():
        mpi.Finalize()


def _session(mpi: Any) -> Any:
    """A session of MPICH; None of other libraries, and of releases without sessions."""
    library = mpi.Get_library_version()
    if mpi.get_vendor()[0] != "MPICH" or mpi.Get_version() < (4, 0) or not hasattr(mpi, "Session"):
        return None
    netmod = os.environ.get(NETMOD, "")
    devices = next((line for line in library.splitlines() if "Device" in line), netmod)
    if netmod not in devices:  # MPICH would end by SIGSEGV
        raise _of_this_host(f"MPI has no network module {netmod!r} ({NETMOD}): unset it ({' '.join(devices.split())})")
    info = mpi.Info.Create()
    info.Set("thread_level", "MPI_THREAD_MULTIPLE")
    try:
        return mpi.Session.Init(info, mpi.ERRORS_RETURN)
    except mpi.Exception as error:
        raise _of_this_host(no_transport(str(error))) from error
    finally:
        info.Free()


def no_transport(said: str) -> str:
    """The line on an error of MPI's start: why, and which variable to set, or unset where it is set."""
    reason = said.strip().splitlines()[-1].partition(":")[2].strip() or said
    if "unsupported PMI" in reason:  # a starter of another library
        return f"mpi4py has loaded MPICH, and what started this rank does not speak to it ({reason}): {_other_start()}"
    name, works = CHOICES["OFI" if "OFI" in said else "UCX"]
    what = f"unset {name}={os.environ[name]}, or set" if name in os.environ else "set"
    return f"MPI found no network that it can use ({reason}): {what} {name}={works}"


def _other_start() -> str:
    if "OMPI_COMM_WORLD_RANK" not in os.environ:
        return "srun --mpi=pmi2, or an mpi4py that finds the starter's library"
    beside = Path(sys.executable).with_name("mpiexec")
    ours = str(beside) if beside.exists() else "MPICH's mpiexec"
    return f"use {ours} in place of Open MPI's mpirun, or set MPI4PY_MPIABI=openmpi"


def _of_this_host(text: str) -> RunError:
    """An error that the first rank of each host says."""
    note.set(doing=f"{SPOKEN} before MPI")
    error = RunError(text)
    local = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
    if next((number for name in local if (number := os.environ.get(name))), "0") != "0":
        on_all_ranks(error)
    return error
