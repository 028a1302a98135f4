"""Which machines answer: each is asked by `mpiexec`, the way that ranks are started, to do nothing.

Machines that do not answer within `SECONDS`, nor soon after the others, are left out of the next start; ranks that ran
there are named.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from distgnn.system.hosts import host_options
from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command
from distgnn.system.processes import die_with_parent, stop_tree

SECONDS = 15.0
AFTER_OTHERS = 5.0  # at least, and five times as long as the last that answered took
STOP_SECONDS = 0.5
Hosts = list[tuple[str, int]]  # (name, ranks)


def answering(hosts: Hosts, seconds: float = SECONDS, over: Callable[[], bool] = lambda: False) -> Hosts:
    """Those of the hosts that start a program within so many seconds, in their order; all are asked at once.

    Args: over: nobody wants to know any more.
    """
    mpiexec = find_mpiexec()
    flavor = mpi_flavor(mpiexec)
    nothing = [sys.executable, "-I", "-S", "-c", "pass"]
    asked = []
    for name, _ in hosts:
        options = host_options([(name, 1)], flavor, {})
        command = [*mpiexec_command(mpiexec, flavor, 1), *options, *nothing]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
        asked.append((process, options))
    try:
        began, answered = time.monotonic(), 0
        deadline = began + seconds
        while not over() and time.monotonic() < deadline and any(process.poll() is None for process, _ in asked):
            time.sleep(0.02)
            now, count = time.monotonic(), sum(process.poll() == 0 for process, _ in asked)
            if count > answered:
                answered, deadline = count, min(began + seconds, max(now + AFTER_OTHERS, began + 5 * (now - began)))
        good = [process.poll() == 0 for process, _ in asked]
    finally:
        with ThreadPoolExecutor(max(min(len(asked), 32), 1)) as pool:  # each that does not answer takes STOP_SECONDS
            list(pool.map(lambda one: stop_tree(one[0], STOP_SECONDS), asked))
        for _, options in asked:
            if flavor != "openmpi":
                Path(options[1]).unlink(missing_ok=True)
    return [host for host, answers in zip(hosts, good, strict=True) if answers]


def first_ranks(hosts: Hosts, num_ranks: int) -> Hosts:
    """The first hosts with room for so many ranks; the last of them may get fewer than it has room for."""
    chosen, left = [], num_ranks
    for name, room in hosts:
        if left > 0:
            chosen.append((name, min(room, left)))
            left -= room
    return chosen


def ranks_on(hosts: Hosts) -> dict[str, list[int]]:
    """The ranks that each host runs, numbered in the order of hosts."""
    found: dict[str, list[int]] = {}
    first = 0
    for name, ranks in hosts:
        found.setdefault(name, []).extend(range(first, first + ranks))
        first += ranks
    return found
