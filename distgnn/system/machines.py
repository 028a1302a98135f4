"""Machines for ranks: which of them answer, and which ranks each of them gets.

A machine is asked by `mpiexec`, the way that ranks are started, to do nothing. One that does not answer in time, nor
soon after the others, is left out of the next start; ranks that ran there are named.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Any

from distgnn.system.hosts import host_options
from distgnn.system.jobs.processes import VARIABLE, die_with_parent, end_job
from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command

SECONDS = 15.0  # in which a machine answers
AFTER_OTHERS = 5.0  # at least, and five times as long as the last that answered took
STOP_SECONDS = 0.5
Hosts = list[tuple[str, int]]  # (name, ranks)


def answering(hosts: Hosts, seconds: float = SECONDS) -> Hosts:
    """The hosts that start a program within some seconds, in their order; all are asked at once."""
    mpiexec = find_mpiexec()
    flavor = mpi_flavor(mpiexec)
    nothing = [sys.executable, "-I", "-S", "-c", "pass"]
    last: dict[str, Any] = {"preexec_fn": die_with_parent(signal.SIGKILL)}
    silent: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    mark = os.urandom(16).hex()  # of what is started to ask
    asked: list[subprocess.Popen] = []
    with ExitStack() as stack:
        try:
            for name, _ in hosts:
                options = stack.enter_context(host_options([(name, 1)], flavor, {}))
                command = [*mpiexec_command(mpiexec, flavor, 1), *options, *nothing]
                asked.append(subprocess.Popen(command, env=os.environ | {VARIABLE: mark}, **silent, **last))
            began, answered = time.monotonic(), 0
            deadline = began + seconds
            while time.monotonic() < deadline and any(process.poll() is None for process in asked):
                time.sleep(0.02)
                now, count = time.monotonic(), sum(process.poll() == 0 for process in asked)
                if count > answered:
                    answered, deadline = count, min(began + seconds, max(now + AFTER_OTHERS, began + 5 * (now - began)))
            good = [process.poll() == 0 for process in asked]
        finally:
            end_job(mark, STOP_SECONDS)
            for process in asked:
                process.wait()
    return [host for host, answers in zip(hosts, good, strict=True) if answers]


def first_ranks(hosts: Hosts, num_ranks: int) -> Hosts:
    """The first hosts with room for these ranks; the last of them may get fewer than it has room for."""
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


def no_answer(host: str, ranks: list[int]) -> str:
    numbers = str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]}-{ranks[-1]}"
    return f"{'ranks' if len(ranks) > 1 else 'rank'} {numbers} on host {host} does not answer"
