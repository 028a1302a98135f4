"""How many threads each rank gets, and which cores the ranks of a machine share.

Without a word from the user a rank takes its share of the cores that it may run on: a core that k ranks of this machine
may use counts 1/k for each of them. So ranks that a launcher bound to cores of their own use all of those, and ranks
that may run anywhere share the machine. DISTGNN_NUM_THREADS and OMP_NUM_THREADS are the user's word.
"""

import os
import platform
from typing import Any

from mpi4py import MPI

from distgnn import kernels
from distgnn.comm import raise_together
from distgnn.config import num_threads
from distgnn.kernels.runtime.memory import (
    MPOL_DEFAULT,
    MPOL_INTERLEAVE,
    keep_pages_near,
    memory_nodes,
    page_policy,
    spread_pages,
)
from distgnn.system.processor import USER_VARIABLES, binding, core_quota

SPREAD = "DISTGNN_PAGES_SPREAD"


def choose_threads(comm: MPI.Comm) -> int:
    """Threads for this rank: what the user set, else its share of this machine's cores.

    Collective: yes.
    """
    near = comm.Split_type(MPI.COMM_TYPE_SHARED)
    everyone = near.allgather(my_cores())
    near.Free()
    if any(os.environ.get(name) for name in USER_VARIABLES):
        with raise_together(comm):
            return num_threads()
    return core_share(my_cores(), everyone, core_quota())


def core_share(mine: list[int], everyone: list[list[int]], quota: float) -> int:
    """The whole cores that fall to one of the ranks of a machine, at least one.

    Args: mine, everyone: cores that this rank, and each rank here (this one too), may run on; quota: of the control
        group, in cores, for all of them.
    """
    if not mine:  # no affinity on this system
        return max(1, int(min(quota, os.cpu_count() or 1) / len(everyone)))
    share = sum(1 / sum(core in theirs for theirs in everyone) for core in mine)
    return max(1, int(min(share, quota / len(everyone)) + 1e-9))


def my_cores() -> list[int]:
    """The cores this process may run on, ascending; empty where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def spread_over_nodes(threads: int) -> None:
    """Have pages lie in turn on the memory nodes that this rank's threads may run on, where there are several.

    Notes: threads that start from now on take the policy of the thread that starts them; those that run keep theirs. A
        single thread keeps to the node that it runs on, and a policy that the user chose (numactl) stays. Processes
        inherit it: a rank that this process starts sees by SPREAD that nobody chose it.
    """
    nodes = memory_nodes(my_cores())
    if os.environ.pop(SPREAD, ""):
        keep_pages_near()
    if threads > 1 and len(nodes) > 1 and spread_pages(nodes):
        os.environ[SPREAD] = "1"


def _where_pages_lie() -> str:
    """What is to be said of this rank's memory; empty with one node, one thread or a policy of the user's."""
    nodes = memory_nodes(my_cores())
    if kernels.get_num_threads() == 1 or len(nodes) < 2:
        return ""
    mode, on_nodes = page_policy() or (MPOL_DEFAULT, [])
    if mode == MPOL_INTERLEAVE:
        return f"memory pages lie on nodes {ranges(on_nodes)} in turn: a rank for each node is quicker"
    first = (
        f"threads on memory nodes {ranges(nodes)}, a page lies where it is first written: start a rank for each node"
    )
    return first if mode == MPOL_DEFAULT else ""


def describe_binding(comm: MPI.Comm) -> list[str]:
    """How many ranks, threads and cores there are, by machine; a warning where ranks share cores. Collective.

    Returns: lines of text, the same on every rank.
    """
    cores = my_cores()
    ranks = comm.allgather((platform.node(), cores, kernels.get_num_threads(), _where_pages_lie()))
    hosts: dict[str, list[int]] = {}
    for rank, (host, *_) in enumerate(ranks):
        hosts.setdefault(host, []).append(rank)
    lines = []
    for host, here in hosts.items():
        numbers = f"rank{'s' if len(here) > 1 else ''} {ranges(here)}"
        lines.append(f"{_binding([ranks[rank] for rank in here])} on {host} ({numbers})")
    if len(set(line.split(" on ")[0] for line in lines)) == 1 and len(lines) > 1:
        lines = [f"{lines[0].split(' on ')[0]} on each of {len(hosts)} machines"]
    lines += [text for host, here in hosts.items() if (text := _sharing(host, here, ranks))]
    for text in sorted({of_rank[3] for of_rank in ranks} - {""}):
        these = [rank for rank, of_rank in enumerate(ranks) if of_rank[3] == text]
        lines.append(f"rank{'s' if len(these) > 1 else ''} {ranges(these)}: {text}")
    return lines


def _binding(here: list[tuple[Any, ...]]) -> str:
    threads = sorted({of_rank[2] for of_rank in here})
    count = str(threads[0]) if len(threads) == 1 else f"{threads[0]} to {threads[-1]}"
    free = all(of_rank[1] == here[0][1] for of_rank in here) and len(here) > 1
    cores = [ranges(of_rank[1]) for of_rank in here]
    bound = f"free to run on cores {cores[0]}" if free or len(here) == 1 else f"bound to cores {' | '.join(cores)}"
    return f"{_ranks(len(here))} × {count} threads, {bound}"


def _ranks(count: int) -> str:
    return f"{count} rank{'s' if count > 1 else ''}"


def _sharing(host: str, here: list[int], ranks: list[tuple[Any, ...]]) -> str | None:
    """Warn where the threads of a machine's ranks are more than the cores they may use together."""
    cores = set().union(*(ranks[rank][1] for rank in here))
    threads = sum(ranks[rank][2] for rank in here)
    bound = binding()
    if bound and cores and threads > len(cores):
        return f"warning: {bound} binds {_ranks(len(here))} on {host} to cores {ranges(sorted(cores))}: unset it"
    if cores and threads > len(cores):
        return f"warning: on {host} {threads} threads of {_ranks(len(here))} share {len(cores)} cores: start fewer"
    for rank in here:
        mine = ranks[rank][1]
        if mine and ranks[rank][2] > len(mine):
            return f"warning: rank {rank} has {ranks[rank][2]} threads on {len(mine)} cores: bind ranks to more cores"
    return None


def ranges(numbers: list[int]) -> str:
    """Ascending whole numbers in short: [0, 1, 2, 8] is "0-2,8"."""
    pieces: list[list[int]] = []
    for number in numbers:
        if pieces and number == pieces[-1][-1] + 1:
            pieces[-1][1:] = [number]
        else:
            pieces.append([number])
    return ",".join("-".join(str(end) for end in piece) for piece in pieces)
