"""The transport: non-blocking messages with a call number as tag, counted and timed. It only moves bytes."""

import numpy as np
from mpi4py import MPI

from distgnn.comm.counters import Counters
from distgnn.errors import RunError


class Transport:
    """Sends and receives arrays for every exchange of one rank, and counts what it cost.

    All exchanges of a graph share one transport, so that call numbers (the tags) run through all of them.

    Args:
        comm: communicator, one rank per part. It is duplicated: the caller's own messages cannot interfere.
        debug: agree on (call number, operation, width) before each exchange, and name the ranks that differ.

    Collective: the constructor and `begin` in debug mode.
    """

    def __init__(self, comm: MPI.Comm, debug: bool = False):
        self._sending: list[MPI.Request] = []
        self.comm = comm.Dup()
        self.rank, self.num_ranks = comm.rank, comm.size
        self.debug = debug
        self.num_calls = 0
        self.counters = Counters()
        self._num_tags = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) + 1

    def begin(self, operation: str, width: int) -> int:
        """Number the next exchange and return its tag. Every rank runs the same sequence of exchanges."""
        self._sending = [request for request in self._sending if request]
        number = self.num_calls
        self.num_calls += 1
        if self.debug:
            self._agree_on_call(number, operation, width)
        return number % self._num_tags

    def _agree_on_call(self, number: int, operation: str, width: int) -> None:
        calls = self.comm.allgather((number, operation, width))
        odd = [f"rank {rank}: {call}" for rank, call in enumerate(calls) if call != calls[0]]
        if odd:
            raise RunError(
                f"ranks differ in their exchanges: rank 0 is at (call, operation, width) {calls[0]}, {'; '.join(odd)}: "
                "every rank must run the same layers in the same order"
            )

    def send(self, rows: np.ndarray, rank: int, tag: int) -> MPI.Request:
        """Start sending contiguous `rows`; they stay untouched until the request is complete."""
        self.counters.sent_bytes += rows.nbytes
        request = self.comm.Isend(rows, rank, tag)
        self._sending.append(request)
        return request

    def receive(self, rows: np.ndarray, rank: int, tag: int) -> MPI.Request:
        """Start receiving into contiguous `rows`."""
        return self.comm.Irecv(rows, rank, tag)

    def wait(self, requests: list[MPI.Request]) -> None:
        """Wait until all requests are complete; the time counts as waiting."""
        if requests:
            with self.counters.timing("wait_seconds"):
                MPI.Request.Waitall(requests)

    def __del__(self):
        """Receivers read the rows of a sender until its request is complete: they must not be freed before."""
        if self._sending and not MPI.Is_finalized():
            MPI.Request.Waitall(self._sending)
