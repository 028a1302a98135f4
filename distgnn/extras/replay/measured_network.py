"""What messages between two ranks cost: the network of `distgnn replay`, measured by `distgnn prices`.

Ranks 0 and the last exchange rows both ways at once, as an aggregation does; the others wait.

    latency, overhead     an 8-byte message there and back; a burst of them
    rank_bandwidth        large messages both ways
    buffer_bytes          the same while both compute and do not call the library: what moved, unless all did
    byte_seconds          how much longer computation takes that calls the library, for each byte that moves
"""

import statistics
import time
from typing import Any

import numpy as np

ROUNDS = 7
BURST = 64
SMALL, LARGE = 8, 8 << 20
PIECE_SECONDS = 0.004  # of computation between two calls of the library
ALL = 0.8  # share of what could move that counts as all of it
LEAST_SECONDS, MOST_BYTES = 0.2, 256 << 20


def measure_network(comm: Any) -> dict[str, float]:
    """The section "network" of a file of prices. Collective: yes, 2 ranks or more.

    Notes: `bandwidth` is what these two ranks reach, processors included: where several ranks share a node's link, or
        the link is faster than one rank, give its own bandwidth behind the file: prices.json,bandwidth=100gbit.
    """
    takes_part = comm.rank in (0, comm.size - 1)
    pair = comm.Split(0 if takes_part else 1, comm.rank)
    found = _measure(pair) if takes_part else None
    pair.Free()
    return comm.bcast(found, root=0)


def _measure(pair: Any) -> dict[str, float]:
    round_trip = min(_round_trip(pair) for _ in range(ROUNDS))
    overhead = min(_burst(pair) for _ in range(ROUNDS)) / (2 * BURST)
    # Bytes of a message that takes long enough to be timed
    num_bytes = LARGE
    seconds = _exchange(pair, num_bytes, None)[0]
    while seconds < LEAST_SECONDS and num_bytes < MOST_BYTES:
        num_bytes *= 2
        seconds = _exchange(pair, num_bytes, None)[0]
    alone = statistics.median(_exchange(pair, num_bytes, None)[0] for _ in range(ROUNDS))
    rate = num_bytes / alone
    work = _Work(alone)
    bare = min(work.run(None)[1] for _ in range(ROUNDS))
    moved, spent = _moved_meanwhile(pair, num_bytes, rate, work)
    without_calls, _ = _moved_meanwhile(pair, num_bytes, rate, work, calls=False)
    mine = {"buffer_bytes": without_calls} if without_calls < ALL * num_bytes else {}
    mine |= {"latency": max(round_trip / 2 - 2 * overhead, 0.0), "overhead": overhead}
    mine |= {"bandwidth": rate, "rank_bandwidth": rate, "byte_seconds": max(spent - bare, 0.0) / (2 * moved)}
    other = pair.sendrecv(mine, 1 - pair.rank, source=1 - pair.rank)
    return {name: (value + other[name]) / 2 for name, value in mine.items() if name in other}


def _moved_meanwhile(pair: Any, num_bytes: int, rate: float, work: "_Work", calls: bool = True) -> tuple[float, float]:
    """Bytes of a message that move while both compute, and the least seconds of the processor that computing takes."""
    times = [_exchange(pair, num_bytes, work, calls) for _ in range(ROUNDS)]
    rest = statistics.median(total - computing for total, computing, _ in times)
    return min(max(num_bytes - rest * rate, 0.02 * num_bytes), num_bytes), min(spent for *_, spent in times)


def _round_trip(pair: Any) -> float:
    message, other = np.zeros(SMALL, np.uint8), 1 - pair.rank
    pair.Barrier()
    started = time.perf_counter()
    for _ in range(BURST):
        if pair.rank == 0:
            pair.Send(message, other)
            pair.Recv(message, other)
        else:
            pair.Recv(message, other)
            pair.Send(message, other)
    return (time.perf_counter() - started) / BURST


def _burst(pair: Any) -> float:
    """Seconds to start small messages both ways."""
    from mpi4py import MPI

    messages = np.zeros((2, BURST, SMALL), np.uint8)
    other = 1 - pair.rank
    pair.Barrier()
    started = time.perf_counter()
    requests = [pair.Irecv(row, other) for row in messages[0]]
    requests += [pair.Isend(row, other) for row in messages[1]]
    seconds = time.perf_counter() - started
    MPI.Request.Waitall(requests)
    return seconds


def _exchange(pair: Any, num_bytes: int, work: Any, calls: bool = True) -> tuple[float, float, float]:
    """Send and receive bytes; returns the longer rank's seconds, and the work's meanwhile, on the wall
    and of the processor.

    Args: calls: call the library between pieces of the work.
    """
    from mpi4py import MPI

    sent, received = np.ones(num_bytes, np.uint8), np.ones(num_bytes, np.uint8)
    other = 1 - pair.rank
    pair.Barrier()
    started = time.perf_counter()
    requests = [pair.Irecv(received, other), pair.Isend(sent, other)]
    between = (lambda: MPI.Request.Testall(requests)) if calls else None
    computing, spent = (0.0, 0.0) if work is None else work.run(between)
    MPI.Request.Waitall(requests)
    seconds = time.perf_counter() - started
    return pair.allreduce(seconds, op=MPI.MAX), computing, spent


class _Work:
    """Matrix products that take about `seconds`, in pieces of a few milliseconds."""

    def __init__(self, seconds: float):
        self._rows = np.ones((256, 256), np.float32)
        self._each = 1
        while self._piece() < PIECE_SECONDS:
            self._each *= 2
        self.piece_seconds = min(self._piece() for _ in range(3))
        self._pieces = max(1, round(seconds / self.piece_seconds))

    def _piece(self) -> float:
        started = time.perf_counter()
        for _ in range(self._each):
            self._rows @ self._rows
        return time.perf_counter() - started

    def run(self, between: Any) -> tuple[float, float]:
        """Do it, calling `between` after each piece; returns seconds on the wall, and of the processor: a small
        difference of two is lost in the noise of the clock on the wall."""
        started, before = time.perf_counter(), time.process_time()
        for _ in range(self._pieces):
            self._piece()
            if between is not None:
                between()
        return time.perf_counter() - started, time.process_time() - before
