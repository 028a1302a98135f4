"""Where the ranks run: the same program on every machine, and cores that are not shared."""

import os
import platform
from typing import Any

from distgnn.comm import check_same
from distgnn.config import num_threads
from distgnn.train.run.machine import ranges, versions


def check_program(comm: Any) -> None:
    """Refuse ranks with other versions of the program, its libraries or the MPI library. Collective.

    Raises: RunError on every rank with the first difference.
    """
    check_same(comm, dict[str, object](versions()), "install the same versions on every machine")


def describe_binding(comm: Any) -> list[str]:
    """How many ranks, threads and cores there are, by machine; a warning where ranks share cores. Collective.

    Returns: lines of text, the same on every rank.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    ranks = comm.allgather((platform.node(), cores, num_threads(), os.cpu_count() or 1))
    hosts: dict[str, list[int]] = {}
    for rank, (host, *_) in enumerate(ranks):
        hosts.setdefault(host, []).append(rank)
    lines = [f"{_binding([ranks[rank] for rank in here])} on {_host(host, here)}" for host, here in hosts.items()]
    if len(set(line.split(" on ")[0] for line in lines)) == 1 and len(lines) > 1:
        lines = [f"{lines[0].split(' on ')[0]} on each of {len(hosts)} machines"]
    return lines + [text for host, here in hosts.items() if (text := _sharing(host, here, ranks))]


def _host(host: str, here: list[int]) -> str:
    return f"{host} (rank{'s' if len(here) > 1 else ''} {ranges(here)})"


def _binding(here: list[tuple]) -> str:
    threads = sorted({of_rank[2] for of_rank in here})
    count = str(threads[0]) if len(threads) == 1 else f"{threads[0]} to {threads[-1]}"
    free = all(of_rank[1] == here[0][1] for of_rank in here) and len(here) > 1
    cores = [ranges(of_rank[1]) for of_rank in here]
    bound = f"free to run on cores {cores[0]}" if free or len(here) == 1 else f"bound to cores {' | '.join(cores)}"
    return f"{len(here)} ranks × {count} threads, {bound}"


def _sharing(host: str, here: list[int], ranks: list[tuple]) -> str | None:
    """Warn where the threads of a machine's ranks are more than the cores they may use together."""
    cores = set().union(*(ranks[rank][1] for rank in here))
    threads = sum(ranks[rank][2] for rank in here)
    if cores and threads > len(cores):
        return f"warning: on {host} {threads} threads of {len(here)} ranks share {len(cores)} cores: start fewer"
    for rank in here:
        mine = ranks[rank][1]
        if mine and ranks[rank][2] > len(mine):
            return f"warning: rank {rank} has {ranks[rank][2]} threads on {len(mine)} cores: bind ranks to more cores"
    return None
