"""Whether this process is a rank, and how a rank ends.

A rank has variables of its starter in its environment (`RANK_VARIABLES`). What it starts inherits them: a
`subprocess`, workers of `multiprocessing`, a fork. Such a process is a plain one. The first import of distgnn in it
takes the variables away, so that MPI is none of its business.

Where a rank ends, MPI_Finalize is called here, not by mpi4py: a fork of a rank must end without it.
"""

import atexit
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from distgnn.system.jobs.keeper import EARLY, ENDS, NOTE_VARIABLE, OWNER
from distgnn.system.jobs.processes import READ_SECONDS, wait_until_read
from distgnn.system.jobs.rank_log import note

# One variable per way of starting a rank. SLURM_PROCID is not among them: sbatch sets it for plain scripts too.
RANK_VARIABLES = (
    "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_RANK", "PALS_RANKID",
)  # fmt: skip
PREFIXES = (
    "PMI_", "PMIX_", "OMPI_COMM_WORLD_", "OMPI_MCA_ess", "OMPI_MCA_orte", "OMPI_MCA_pmix", "OMPI_UNIVERSE_SIZE",
    "OMPI_FILE_LOCATION", "OMPI_APP_CTX", "MPI_LOCAL", "MV2_COMM_WORLD_", "PALS_", "HYDI_", "PRTE_",
)  # fmt: skip
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
OURS = ("DISTGNN_RANKS", "DISTGNN_LAUNCHED", NOTE_VARIABLE, "DISTGNN_TIMEOUT", OWNER)
UNJOINED = 32001  # tag on MPI.COMM_WORLD: a rank ends; to who waits in its first `load`: it has loaded no graph
FAREWELL_SECONDS = 30.0
DEATH_SECONDS = 2.0  # from an error of MPI to the end of a job in which another rank was killed
SPEAK_SECONDS = 0.3  # between ranks that fail alike: the job ends when the first has spoken


def under_mpi() -> bool:
    """Whether this process was started as a rank by `mpiexec`, `srun --mpi=…` or their like."""
    return any(name in os.environ for name in RANK_VARIABLES)


def forget_parent() -> None:
    """Make this process a plain one where a rank has started it; else note that it is the rank."""
    os.environ.setdefault("UCX_LOG_FILE", "stderr")  # its warnings would stand among what --json prints
    if not under_mpi():
        return
    if _is_child():
        _forget_variables()
        return
    os.environ[OWNER] = f"{os.getpid()} {_rank()}"
    _finalize_here()


def leave_step_of_one() -> bool:
    """Make what this process starts plain ones, where its starter has started no other rank; has it?

    Notes: `srun -n 1 --cpus-per-task 32 python script.py` is how a script runs in a job of Slurm.
    """
    sizes = {os.environ[name] for name in SIZES if name in os.environ}
    sizes = sizes or {os.environ.get("SLURM_STEP_NUM_TASKS", "")}  # with PMIx
    if sizes == {"1"}:
        _forget_variables(but="DISTGNN_TIMEOUT")  # the user's
    return sizes == {"1"}


def _forget_variables(but: str = "") -> None:
    for name in list(os.environ):
        if name != but and (name in OURS or name.startswith(PREFIXES)):
            del os.environ[name]


def is_child() -> bool:
    """Whether this process is a fork of a rank: MPI is that rank's."""
    owner = os.environ.get(OWNER, "").split()
    return bool(owner) and owner[0] != str(os.getpid())


def _is_child() -> bool:
    number = os.environ.get("PMI_FD", "")
    if number.isdigit():
        try:
            if not stat.S_ISSOCK(os.fstat(int(number)).st_mode):
                return True
        except OSError:
            return True
    owner = os.environ.get(OWNER, "").split(maxsplit=1)
    # Another rank's name: started by what a rank has started.
    return len(owner) == 2 and owner[0] != str(os.getpid()) and owner[1] == _rank()


def _rank() -> str:
    """What only one rank of one job has."""
    return " ".join(f"{name}={os.environ.get(name)}" for name in (*RANK_VARIABLES, "PMI_FD", "PMI_SIZE"))


def forget_segment() -> None:
    """Unlink the shared memory that MPICH makes for a process without a starter: a kill would leave it for ever.

    Notes: no other process opens it. MPICH does not mind at its end (5.0).
    """
    if not under_mpi():
        with suppress(OSError):
            os.unlink(f"/dev/shm/mpich_shm_{os.getpid():x}_0")


# How ranks end

last_acts: list[Callable[[], None]] = []  # what a rank does before MPI_Finalize


def _finalize_here() -> None:
    """Have MPI_Finalize called by this module, unless it is too late, or the user has chosen already."""
    import mpi4py

    if "mpi4py.MPI" not in sys.modules and mpi4py.rc.finalize is None:
        mpi4py.rc.finalize = False
    see_to_the_end(ours=mpi4py.rc.finalize is False)


def see_to_the_end(ours: bool) -> None:
    """This process ends with the others' knowledge. Args: ours: MPI_Finalize is called here."""
    atexit.register(_end, os.getpid(), ours)


def may_end_alone() -> bool:
    """Whether this rank can end without MPI_Finalize, and so with its own exit code."""
    import mpi4py

    return mpi4py.rc.finalize is False


_ended: list[bool] = []


def over() -> bool:
    """Whether this rank has done its last acts."""
    return bool(_ended)


def _end(pid: int, ours: bool) -> None:
    if os.getpid() != pid:
        return
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized():
        note.set(stage=EARLY)
        return
    if mpi.Is_finalized():
        note.set(stage=ENDS)
        return
    _ended.append(True)
    for act in last_acts:
        act()
    say_farewell(mpi)
    note.set(stage=ENDS)
    if ours:
        mpi.Finalize()


def say_farewell(mpi: Any) -> None:
    """Tell all ranks that this one ends, and hear it of them.

    Notes: MPICH 5 fails in MPI_Finalize where a message was not received, and its mpiexec then kills the other ranks.
        A program of another kind among the ranks says nothing: after some seconds it is heard in MPI_Finalize, or not.
    """
    world = mpi.COMM_WORLD
    others = [rank for rank in range(world.size) if rank != world.rank]
    _farewells.extend(world.Irecv([bytearray(1), mpi.BYTE], rank, UNJOINED) for rank in others)
    _farewells.extend(world.Isend([b"", mpi.BYTE], rank, UNJOINED) for rank in others)
    deadline, pause = time.monotonic() + FAREWELL_SECONDS, 0.0002
    while not all([request.Test() for request in _farewells]) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


_farewells: list[Any] = []


def abort_job(code: int) -> None:
    """End every rank, with this exit code, once the launcher has read what this rank wrote; a fork of a rank goes on.

    Notes: a launcher passes on its ranks' output in the order in which it comes to read it, and may hear of the end
        first (mpich's hydra lost the last line of one job in three).
    """
    if is_child():
        return
    from mpi4py import MPI

    wait_until_read(READ_SECONDS)
    note.set(stage=ENDS)  # it has spoken
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MPI would say that it was aborted
    MPI.COMM_WORLD.Abort(code)
