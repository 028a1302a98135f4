"""Room in /dev/shm for the messages of ranks on one machine: without it MPICH ends in a bus error.

Containers have 64 MB there, or less. Measured with MPICH 5.0 on 1 to 8 ranks: one file of 1,057,344 bytes per rank and
4096 more, all of it taken at the start. UCX, where MPICH was built with it, takes 4.2 MB per rank more, and does
without where there is no room.
"""

import os

from distgnn.errors import RunError, on_all_ranks
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
