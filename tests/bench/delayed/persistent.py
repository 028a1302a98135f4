"""What persistent requests on buffers made once would save over a new request per message.

    mpiexec -n 2 python tests/bench/delayed/persistent.py

Two ranks exchange messages of each size both ways; median seconds of a round trip, interleaved, microseconds.
"""

import statistics
import time

import numpy as np
from mpi4py import MPI

SIZES = (1_000, 100_000, 1_000_000, 10_000_000)


def main() -> None:
    """A Markdown row per size."""
    comm = MPI.COMM_WORLD
    other = comm.size - 1 - comm.rank
    if comm.rank == 0:
        print("| bytes | new requests, µs | persistent, µs |\n|---|---|---|")
    for size in SIZES:
        sent, received = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        kept = [comm.Recv_init(received, other, 1), comm.Send_init(sent, other, 1)]
        times = {"new": [], "kept": []}
        for _ in range(max(30, min(2000, 200_000_000 // size))):
            times["new"].append(timed(lambda s=sent, r=received: [comm.Irecv(r, other, 0), comm.Isend(s, other, 0)]))
            times["kept"].append(timed(lambda k=kept: (MPI.Prequest.Startall(k), k)[1]))
        for request in kept:
            request.Free()
        if comm.rank == 0:
            cells = [f"{1e6 * statistics.median(times[name]):.1f}" for name in ("new", "kept")]
            print(f"| {size:,} | {' | '.join(cells)} |", flush=True)


def timed(start) -> float:
    """Seconds from starting an exchange to its end."""
    MPI.COMM_WORLD.Barrier()
    before = time.perf_counter()
    MPI.Request.Waitall(start())
    return time.perf_counter() - before


if __name__ == "__main__":
    main()
