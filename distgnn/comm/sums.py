"""Sums and extremes of arrays over ranks, waited for or in the background."""

import numpy as np
from mpi4py import MPI

from distgnn.comm.ending.leaving import waiting


def sum_over_ranks(comm: MPI.Comm, values: np.ndarray) -> np.ndarray:
    """The sum of equally shaped arrays over all ranks, the same bits on each. Collective: yes."""
    total = np.empty_like(values)
    comm.Allreduce(values, total)
    return total


def extreme_over_ranks(comm: MPI.Comm, values: np.ndarray, which: str) -> np.ndarray:
    """The "max" or "min" of equally shaped arrays over all ranks, entry by entry. Collective: yes."""
    found = np.empty_like(values)
    comm.Allreduce(values, found, op=MPI.MAX if which == "max" else MPI.MIN)
    return found


def start_sum_over_ranks(comm: MPI.Comm, values: np.ndarray) -> MPI.Request:
    """Start summing `values` over all ranks, in place; leave them alone until `wait_for_all` has returned.

    Collective: yes; every rank starts its sums on `comm` in the same order.
    """
    return comm.Iallreduce(MPI.IN_PLACE, values)


def wait_for_all(requests: list[MPI.Request]) -> None:
    """Wait until all requests are complete, in the way of their kind (`distgnn replay` has its own)."""
    if requests:
        with waiting("exchange"):
            requests[0].Waitall(requests)


def are_complete(requests: list[MPI.Request]) -> bool:
    """Are all requests complete? Asked in the way of their kind; the library moves messages meanwhile."""
    return not requests or requests[0].Testall(requests)
