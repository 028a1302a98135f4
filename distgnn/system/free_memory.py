"""How much memory this process may still take, and which errors say that there was none left.

Room in /dev/shm for the messages of ranks on one machine: without it MPICH ends in a bus error.

Containers have 64 MB there, or less. Measured with MPICH 5.0 on 1 to 8 ranks: one file of 1,057,344 bytes per rank and
4096 more, all of it taken at the start. UCX, where MPICH was built with it, takes 4.2 MB per rank more, and does
without where there is no room.
"""

import errno
import os
import platform
import re
import resource
from pathlib import Path

from distgnn.errors import InputError, RunError, on_all_ranks
from distgnn.system.jobs.processes import LESS_MEMORY, control_groups
from distgnn.system.jobs.rank_log import note
from distgnn.system.units import human_bytes

FOLDER = "/dev/shm"
BYTES_PER_RANK, BYTES = 1_100_000, 100_000
LOCAL_RANKS, ALL_RANKS = "MPI_LOCALNRANKS", "PMI_SIZE"  # as Hydra tells each rank


def check_room(num_ranks: int, free: int | None = None) -> None:
    """Refuse to start ranks of MPICH on this machine where their messages have no room.

    Args: free: bytes; None asks the file system.
    """
    needed = BYTES + num_ranks * BYTES_PER_RANK
    free = _room("f_bavail") if free is None else free
    if free is not None and free < needed:
        raise RunError(
            f"{FOLDER} has room for {human_bytes(free)}, and {num_ranks} ranks of MPICH on a machine need "
            f"{human_bytes(needed)}: give the container more (docker run --shm-size=1g; in Kubernetes an emptyDir of "
            "medium Memory mounted there), or remove mpich_shm_* files that no job uses any more"
        )


def check_room_here(alone: bool) -> None:
    """The same on a rank, before MPI starts, where all ranks are here; `alone`: it is the only one.

    Notes: looks at the size of the file system, not at what is free: another rank may have taken its room already. A
        rank that ends before MPI_Init leaves other machines' ranks waiting: nothing is checked where there are any.
    """
    if alone:
        check_room(1)
        return
    number = os.environ.get(LOCAL_RANKS, "")
    if number.isdigit() and number == os.environ.get(ALL_RANKS):
        try:
            check_room(int(number), _room("f_blocks"))
        except RunError as error:
            raise on_all_ranks(error) from None


def _room(blocks: str) -> int | None:
    """Bytes of the file system: free ones ("f_bavail") or all ("f_blocks"); None where there is no such folder."""
    try:
        found = os.statvfs(FOLDER)
    except OSError:
        return None
    return int(getattr(found, blocks)) * found.f_frsize


# How libraries say it whose errors have no kind of their own: torch; the dynamic linker; Python's threads; MPI.
NO_MEMORY = re.compile(
    r"can't allocate memory|cannot allocate memory|not enough memory|out of memory|failed to map segment|bad_alloc"
    r"|can't start new thread|unable to allocate|insufficient memory|MPI_ERR_NO_MEM",
    re.IGNORECASE,
)
ADDRESS_BYTES = 1_500_000_000  # of a rank of a tiny graph that compiles; with 1.38 GB LLVM ended it, OpenBLAS hung
PROGRAM = 200_000_000  # bytes of a rank that has loaded torch and nothing else, not counting shared pages


def check_programs(num_ranks: int, free: int | None = None) -> None:
    """Refuse to start ranks on this machine where their programs alone have no room.

    Args: free: bytes; None asks the system. Raises: InputError with both numbers and how many have room.
    """
    most = address_limit()
    if most is not None and most < ADDRESS_BYTES:
        raise InputError(
            f"a rank needs about {human_bytes(ADDRESS_BYTES)} of addresses, and may have {human_bytes(most)} "
            "(ulimit -v): raise the limit"
        )
    free = available_bytes() if free is None else free
    if num_ranks * PROGRAM > free:
        raise InputError(
            f"{num_ranks} ranks need {human_bytes(num_ranks * PROGRAM)} for their programs alone, and this machine has "
            f"{human_bytes(free)} free: at most {free // PROGRAM} of them; the graph needs room too"
        )


def available_bytes() -> int:
    """Memory that this process may still take: free on the machine, cut by its control groups' limits."""
    free = 1 << 62
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        if hasattr(os, "sysconf"):
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(min([free, *map(_free_in_group, control_groups())]), 0)


def _free_in_group(folder: Path) -> int:
    """What the limit of a control group (version 2 or 1) leaves, cached files counted as free; much without a limit."""
    for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        try:
            most, taken = (folder / limit).read_text().strip(), int((folder / used).read_text())
            words = (folder / "memory.stat").read_text().split()
            cached = int(words[words.index("inactive_file") + 1]) if "inactive_file" in words else 0
            return int(most) - taken + cached if most != "max" else 1 << 62
        except (OSError, ValueError):
            continue
    return 1 << 62


def no_memory(error: BaseException, rank: int) -> str | None:
    """The line on an error that says that memory could not be had; None for other errors.

    Notes: `error.phase` is what the rank was doing; else its phase now.
    """
    chain: list[BaseException] = []  # the error, and those that it was raised from or after, the first last
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    said = [str(one) for one in chain if _is_shortage(one)]
    if not said:
        return None
    phase = getattr(error, "phase", note.phase)
    doing = f" in {phase}" if phase else ""
    reason = (said[-1].strip().splitlines() or [type(error).__name__])[0].strip()
    limit = address_limit()
    limited = f" with at most {human_bytes(limit)} of addresses (ulimit -v)" if limit is not None else ""
    what = f"raise the limit, or {LESS_MEMORY}" if limited else LESS_MEMORY
    return f"no memory for rank {rank} on host {platform.node()}{doing}{limited}: {reason}: {what}"


def address_limit() -> int | None:
    """Bytes of addresses that this process may have (`ulimit -v`); None where there is no limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _is_shortage(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    if NO_MEMORY.search(str(error)) is not None:
        return isinstance(error, (RuntimeError, OSError, ImportError))
    # Under a limit libraries that cannot be mapped seem to be missing.
    return address_limit() is not None and isinstance(error, OSError) and "shared object" in str(error)
