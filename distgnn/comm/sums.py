"""Arrays over ranks: sums and extremes, waited for or in the background, and arrays brought to one rank or to all.

They are brought in pieces that any MPI library can count: a pickled collective counts all ranks' bytes in one 32-bit
integer, and with Open MPI 4.1, and others before MPI 4, it ends at 2 GiB in all.
"""

from collections.abc import Iterator

import numpy as np
from mpi4py import MPI

from distgnn.system.jobs.doing import waiting

LARGEST_PIECE = 2**29  # bytes
TAG = 7


def sum_over_ranks(comm: MPI.Comm, values: np.ndarray) -> np.ndarray:
    """The sum of equally shaped arrays over all ranks, the same bits on each. Collective: yes."""
    total = np.empty_like(values)
    comm.Allreduce(values, total)
    return total


def extreme_over_ranks(comm: MPI.Comm, values: np.ndarray, which: str) -> np.ndarray:
    """The "max" or "min" of equally shaped arrays over all ranks, entry by entry; NaN where there is one.

    Collective: yes.

    Notes: of NaN, MPI's maximum depends on the order of ranks. It stands for infinity first; where infinity is the
        result, which all ranks see, they ask each other which of the two it was.
    """
    found, op = np.empty_like(values), MPI.MAX if which == "max" else MPI.MIN
    if values.dtype.kind != "f":
        comm.Allreduce(values, found, op=op)
        return found
    lost, last = np.isnan(values), values.dtype.type(np.inf if which == "max" else -np.inf)
    comm.Allreduce(np.where(lost, last, values), found, op=op)
    if (found == last).any():
        anywhere = np.empty(values.shape, np.uint8)
        comm.Allreduce(lost.astype(np.uint8), anywhere, op=MPI.MAX)
        found[anywhere != 0] = np.nan
    return found


def start_sum_over_ranks(comm: MPI.Comm, values: np.ndarray) -> MPI.Request:
    """Start summing `values` over all ranks, in place; leave them alone until `wait_for_all` has returned.

    Collective: yes; every rank starts its sums on `comm` in the same order.
    """
    return comm.Iallreduce(MPI.IN_PLACE, values)


def start_max_over_ranks(comm: MPI.Comm, values: np.ndarray) -> MPI.Request:
    """The same for the maximum of each number."""
    return comm.Iallreduce(MPI.IN_PLACE, values, op=MPI.MAX)


def wait_for_all(requests: list[MPI.Request]) -> None:
    """Wait until all requests are complete, in the way of their kind (noted ones have their own)."""
    if requests:
        with waiting("exchange"):
            requests[0].Waitall(requests)


def are_complete(requests: list[MPI.Request]) -> bool:
    """Are all requests complete? Asked in the way of their kind; the library moves messages meanwhile."""
    return not requests or requests[0].Testall(requests)


def gather_arrays(comm: MPI.Comm, values: np.ndarray, root: int | None = 0) -> list[np.ndarray] | None:
    """Every rank's array, in the order of ranks, on `root` (None: on every rank); None elsewhere.

    Collective: yes.

    Args: values: [n, ...] with any n; dtype and the other lengths are the same on every rank.
    """
    values = np.ascontiguousarray(values)
    lengths = comm.allgather(len(values))
    if comm.size == 1:
        return [values]
    maker = 0 if root is None else root
    if comm.rank != maker:
        send_array(comm, values, maker)
    found = [np.empty((length, *values.shape[1:]), values.dtype) for length in lengths if root in (None, comm.rank)]
    if comm.rank == maker:
        for rank, array in enumerate(found):
            if rank == maker:
                array[...] = values
            else:
                receive_array(comm, array, rank)
    if root is None:
        for array in found:
            for piece in byte_pieces(array, LARGEST_PIECE):
                comm.Bcast([piece, MPI.BYTE], root=maker)
    return found or None


def send_array(comm: MPI.Comm, values: np.ndarray, rank: int) -> None:
    """Send a contiguous array to a rank that calls `receive_array`; it may be overwritten afterwards."""
    with waiting(f"sending rows to rank {rank}"):
        for piece in byte_pieces(values, LARGEST_PIECE):
            comm.Send([piece, MPI.BYTE], rank, TAG)


def receive_array(comm: MPI.Comm, out: np.ndarray, rank: int) -> None:
    """Receive into a contiguous array what a rank sends by `send_array`: of the same length and dtype."""
    with waiting(f"receiving rows of rank {rank}"):
        for piece in byte_pieces(out, LARGEST_PIECE):
            comm.Recv([piece, MPI.BYTE], rank, TAG)


def byte_pieces(values: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """The bytes of an array in pieces that MPI can count; both ends cut alike."""
    flat = values.reshape(-1).view(np.uint8)
    return (flat[first : first + most] for first in range(0, len(flat), most))
