"""`distgnn prices`: what messages cost between these ranks, for `--network`.

Ranks 0 and the last exchange rows both ways at once, as an aggregation does; the others wait.

    latency, overhead     an 8-byte message there and back; a burst of them
    bandwidth             large messages both ways
"""

import json
import statistics
import time
from typing import Any

import typer

from distgnn.cli.display import check_place, write_json
from distgnn.cli.options import AsJson

ROUNDS = 7
BURST = 64
SMALL, LARGE = 8, 8 << 20
LEAST_SECONDS, MOST_BYTES = 0.2, 256 << 20


def prices(
    out: str = typer.Argument(help="JSON file to write."),
    ranks: int = typer.Option(2, help="Ranks to start where none were started, at least 2."),
    as_json: AsJson = False,
) -> None:
    """Send messages between the ranks that are given, and write what they cost."""
    from distgnn.cli.places import checked_together, run_on_ranks
    from distgnn.errors import InputError, on_all_ranks

    with checked_together():
        check_place(out)
    run_on_ranks(ranks, 1)
    from distgnn.system.launch import import_mpi
    from distgnn.system.output import plain

    comm = import_mpi().COMM_WORLD
    if comm.size < 2:
        raise on_all_ranks(InputError("a single rank sends nothing: measure prices on two or more, as --ranks 2"))
    network = measure_network(comm)
    with checked_together():
        if comm.rank == 0:
            write_json(out, {"network": network})
    if comm.rank:
        return
    if as_json:
        print(json.dumps({"network": network}, indent=1))
    else:
        speed = f"{8e-9 * network['bandwidth']:.3g} Gbit/s, {1e6 * network['latency']:.3g} µs"
        print(f"messages: {speed}; written to {plain(out)}")


def measure_network(comm: Any) -> dict[str, float]:
    """The section "network" of a file of prices. Collective: yes, 2 ranks or more.

    Notes: `bandwidth` is what these two ranks reach, processors included: where several ranks share a node's link, or
        the link is faster than one rank, give its own bandwidth behind the file: prices.json,bandwidth=100gbit.
    """
    other = {0: comm.size - 1, comm.size - 1: 0}.get(comm.rank)
    if other is None:
        return comm.bcast(None, root=0)
    round_trip = min(_exchange(comm, other, SMALL, 1) for _ in range(ROUNDS * BURST))
    overhead = max(min(_exchange(comm, other, SMALL, BURST) for _ in range(ROUNDS)) - round_trip, 0.0) / (2 * BURST)
    num_bytes = LARGE
    while _exchange(comm, other, num_bytes, 1) < LEAST_SECONDS and num_bytes < MOST_BYTES:
        num_bytes *= 2
    rate = num_bytes / statistics.median(_exchange(comm, other, num_bytes, 1) for _ in range(ROUNDS))
    latency = max(round_trip - 2 * overhead, 0.0)
    found = {"latency": latency, "overhead": overhead, "bandwidth": rate}
    return comm.bcast(found, root=0)


def _exchange(comm: Any, other: int, num_bytes: int, count: int) -> float:
    """Seconds until both ranks have sent and received `count` messages; the longer of the two."""
    import numpy as np
    from mpi4py import MPI

    sent, received = np.ones((2, count, num_bytes), np.uint8)
    comm.sendrecv(0, other, source=other)
    started = time.perf_counter()
    requests = [comm.Irecv(row, other) for row in received] + [comm.Isend(row, other) for row in sent]
    MPI.Request.Waitall(requests)
    seconds = time.perf_counter() - started
    return max(seconds, comm.sendrecv(seconds, other, source=other))
