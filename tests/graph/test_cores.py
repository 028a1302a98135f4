"""Threads per rank: the user's word, or a share of the cores that ranks of one machine may run on."""

import os
import subprocess
import sys

import pytest
from command import without_rank_variables
from cut_graphs import random_graph
from mpi4py import MPI

from distgnn.graph import cores
from distgnn.graph.cores import core_share, ranges
from distgnn.graph.loader import load
from distgnn.kernels.runtime.memory import memory_nodes
from distgnn.partition import partition_graph
from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command
from distgnn.system.processor import available_cores

ALL, NO_QUOTA = list(range(8)), float("inf")


@pytest.mark.parametrize(
    ("mine", "everyone", "quota", "expected"),
    [
        (ALL, [ALL], NO_QUOTA, 8),
        (ALL, [ALL, ALL], NO_QUOTA, 4),
        (ALL, [ALL] * 3, NO_QUOTA, 2),
        (ALL, [ALL] * 16, NO_QUOTA, 1),
        ([0, 1, 2], [[0, 1, 2], [3, 4, 5, 6, 7]], NO_QUOTA, 3),  # bound to cores of their own
        ([0, 1, 2, 3], [[0, 1, 2, 3], [2, 3, 4, 5]], NO_QUOTA, 3),  # two cores alone, two shared
        (ALL, [ALL, ALL], 4.0, 2),
        (ALL, [ALL, ALL], 0.5, 1),
    ],
)
def test_a_rank_gets_its_share(mine, everyone, quota, expected):
    assert core_share(mine, everyone, quota) == expected


def test_the_users_word_beats_the_share(monkeypatch):
    monkeypatch.delenv("DISTGNN_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cores.choose_threads(MPI.COMM_SELF) == 3


def test_who_binds_all_ranks_to_a_core_is_named(monkeypatch):
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    rank = ("host", [0], 1, "")
    assert cores._sharing("host", [0, 1], [rank, rank]) == (
        "warning: OMP_PROC_BIND=true binds 2 ranks on host to cores 0: unset it"
    )


SCRIPT = """
import sys
import torch
import distgnn as dg
from distgnn import kernels
graph = dg.load(sys.argv[1])
assert kernels.get_num_threads() == torch.get_num_threads()
threads = graph.comm.gather(torch.get_num_threads())
if graph.rank == 0:
    print(*threads)
"""


@pytest.mark.slow
def test_a_script_under_mpiexec_needs_no_variables(tmp_path):
    partition_graph(random_graph(), 2, tmp_path / "parts", method="libra")
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = without_rank_variables()
    for name in ("OMP_NUM_THREADS", "DISTGNN_NUM_THREADS", "MKL_NUM_THREADS"):
        environment.pop(name, None)
    mpiexec = find_mpiexec()
    command = [*mpiexec_command(mpiexec, mpi_flavor(mpiexec), 2), sys.executable, tmp_path / "script.py"]
    done = subprocess.run(
        [*command, tmp_path / "parts"], env=environment, capture_output=True, text=True, timeout=900, check=True
    )
    share = max(1, available_cores() // 2)
    assert done.stdout.split() == [str(share)] * 2
    lines = [line for line in done.stderr.splitlines() if "ranks" in line]
    assert lines[0].startswith(f"2 ranks × {share} threads")
    assert any("warning" in line for line in lines) == (2 * share > len(os.sched_getaffinity(0)))


@pytest.mark.mpi(2)
def test_ranks_that_share_cores_are_warned_of(comm, monkeypatch):
    monkeypatch.setattr(cores.platform, "node", lambda: "host")
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(cores.kernels, "get_num_threads", lambda: 2)
    assert cores.describe_binding(comm) == ["2 ranks × 2 threads, free to run on cores 0-3 on host (ranks 0-1)"]
    monkeypatch.setattr(cores.kernels, "get_num_threads", lambda: 4)
    lines = cores.describe_binding(comm)
    assert lines[1] == "warning: on host 8 threads of 2 ranks share 4 cores: start fewer"
    bound = [{0, 1}, {2, 3}][comm.rank]
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: bound)
    monkeypatch.setattr(cores.kernels, "get_num_threads", lambda: 2)
    assert cores.describe_binding(comm) == ["2 ranks × 2 threads, bound to cores 0-1 | 2-3 on host (ranks 0-1)"]


@pytest.mark.mpi(1)
def test_one_process_says_its_threads_too(comm, monkeypatch, shared_tmp_path):
    monkeypatch.setattr(cores.platform, "node", lambda: "host")
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: {0, 1})
    partition_graph(random_graph(), 1, shared_tmp_path / "parts", method="libra")
    said = []
    load(shared_tmp_path / "parts", comm=comm, say=said.append)
    assert said[0] in [f"1 rank × {n} threads, free to run on cores 0-1 on host (rank 0)" for n in (1, 2)]


@pytest.fixture
def two_nodes(tmp_path, monkeypatch):
    """A machine of two sockets with memory, and a third node without."""
    (tmp_path / "has_memory").write_text("0-1\n")
    for node, text in enumerate(("0-1,4\n", "2-3\n", "5\n")):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(text)
    monkeypatch.setattr(cores, "memory_nodes", lambda mine: memory_nodes(mine, tmp_path))
    return tmp_path


def test_nodes_with_memory_are_found(two_nodes):
    assert [memory_nodes(mine, two_nodes) for mine in ([1], [0, 3, 5], [5], [])] == [[0], [0, 1], [], []]
    assert memory_nodes([0], two_nodes / "none") == []


@pytest.mark.parametrize(
    ("mine", "threads", "policy", "expected"),
    [
        ({0, 1}, 2, (0, []), None),  # one node
        ({0, 2}, 1, (0, []), None),  # one thread keeps to its node
        ({0, 2}, 2, (0, []), "rank 0: threads on memory nodes 0-1, a page lies where"),  # refused
        ({0, 2}, 2, None, "rank 0: threads on memory nodes 0-1, a page lies where"),  # a container does not say
        ({0, 2}, 2, (3, [0, 1]), "rank 0: memory pages lie on nodes 0-1 in turn"),
        ({0, 2}, 2, (2, [1]), None),  # numactl --membind
    ],
)
def test_where_pages_lie_is_said(mine, threads, policy, expected, two_nodes, monkeypatch):
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: mine)
    monkeypatch.setattr(cores.kernels, "get_num_threads", lambda: threads)
    monkeypatch.setattr(cores, "page_policy", lambda: policy)
    lines = cores.describe_binding(MPI.COMM_SELF)[1:]
    assert [line[: len(expected or "")] for line in lines] == ([expected] if expected else [])


@pytest.mark.parametrize(("mine", "threads", "spread"), [({0, 2}, 2, [[0, 1]]), ({0, 1}, 2, []), ({0, 2}, 1, [])])
def test_pages_are_spread_where_threads_span_nodes(mine, threads, spread, two_nodes, monkeypatch):
    asked = []
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: mine)
    monkeypatch.setattr(cores, "spread_pages", lambda nodes: asked.append(nodes) or True)
    monkeypatch.setattr(cores, "keep_pages_near", lambda: asked.append("near"))
    monkeypatch.delenv(cores.SPREAD, raising=False)
    cores.spread_over_nodes(threads)
    assert asked == spread
    cores.spread_over_nodes(1)  # as a rank that a process with spread pages has started
    assert asked == [*spread, *["near"] * len(spread)] and cores.SPREAD not in os.environ


def test_ranges():
    assert ranges([0, 1, 2, 8, 10, 11]) == "0-2,8,10-11"
    assert ranges([]) == ""
