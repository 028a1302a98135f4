"""The installation checks itself: kernels against numpy, and one training step on all ranks against one process."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from mpi4py import MPI

from distgnn.comm import sum_over_ranks
from distgnn.graph.cores import choose_threads, describe_binding
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.loader import use_threads
from distgnn.partition import VertexCut, local_part
from distgnn.train.gradients import GradientBuffer
from distgnn.train.metrics import rank_loss
from distgnn.train.run.machine import versions

MESSAGE = 1 << 17  # numbers of 8 bytes
TOLERANCE = 1e-10  # float64 sums in another order


@dataclass
class Report:
    """What was checked: (name, finding) pairs, the same on every rank."""

    rank: int
    ok: bool = True
    rows: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, ok: bool, finding: str) -> None:
        self.ok = self.ok and ok
        self.rows.append((name, f"{'ok' if ok else 'FAILED'}: {finding}"))


def check_installation(
    kernel_results: list[tuple[Any, ...]], kernel_threads: Callable[[], int], graph_data: Any, model: Any
) -> Report:
    """Check kernels, MPI and one exact training step on the ranks that are there. Collective: yes.

    Args: kernel_results: of `self_check` in `kernels/check/cases.py`, on this rank; kernel_threads: how many they use;
        graph_data: a small `GraphData` with features, labels and a train split; model: the same on every rank.
    """
    comm = MPI.COMM_WORLD
    use_threads(choose_threads(comm))
    report = Report(comm.rank)
    bad = [name for name, ok, _ in kernel_results if not ok]
    bad = sorted({name for names in comm.allgather(bad) for name in names})
    worst = comm.allreduce(max(error for _, _, error in kernel_results), op=MPI.MAX)
    finding = f"{len(kernel_results)} kernels against numpy, largest relative error {worst:.1e}"
    report.add("kernels", not bad, f"wrong: {', '.join(bad)}" if bad else finding)
    names = versions()
    # Every rank sends every other one a megabyte that only the two can know, without waiting, as training does
    rows = [np.arange(MESSAGE, dtype=np.int64) * (comm.rank + 1) + rank for rank in range(comm.size)]
    received = [np.empty(MESSAGE, dtype=np.int64) for _ in range(comm.size)]
    requests = [comm.Irecv(buffer, rank) for rank, buffer in enumerate(received)]
    requests += [comm.Isend(row, rank) for rank, row in enumerate(rows)]
    MPI.Request.Waitall(requests)
    expected = (np.arange(MESSAGE, dtype=np.int64) * (rank + 1) + comm.rank for rank in range(comm.size))
    good = all(np.array_equal(one, other) for one, other in zip(received, expected, strict=True))
    everywhere = comm.allreduce(good, op=MPI.LAND)
    report.add("MPI", everywhere, f"{names['mpi']}, {comm.size} ranks, each to each 1 MB")
    found = comm.allgather((choose_threads(comm), torch.get_num_threads(), kernel_threads()))
    wrong = [f"rank {rank} has {counts}" for rank, counts in enumerate(found) if len(set(counts)) > 1]
    right = f"{found[0][0]} per rank, for torch and for the kernels"
    report.add("threads", not wrong, "; ".join(wrong) or right)
    for line in describe_binding(comm):
        report.add("cores", True, line)
    of_ranks = comm.allgather(names)
    odd = next((rank for rank, one in enumerate(of_ranks) if one != of_ranks[0]), None)
    text = ", ".join(f"{name} {version}" for name, version in names.items() if name != "mpi")
    report.add("versions", odd is None, text if odd is None else f"rank 0 has {of_ranks[0]}, rank {odd} others")
    # One step with dropout: all ranks against this rank alone
    many, alone = (_loss_and_gradient(one, graph_data, model.double()) for one in (comm, MPI.COMM_SELF))
    error = max(np.abs(one - other).max() / np.abs(other).max() for one, other in zip(many, alone, strict=True))
    error = comm.allreduce(error, op=MPI.MAX)
    finding = f"{comm.size} ranks against one process, loss and gradient differ by {error:.1e} (float64)"
    report.add("training step", bool(error <= TOLERANCE), finding)
    return report


def _loss_and_gradient(comm: MPI.Comm, graph_data: Any, model: torch.nn.Module) -> tuple[np.ndarray, np.ndarray]:
    edges = graph_data.edge_list()
    random = np.random.default_rng(0)
    owner = random.integers(0, comm.size, edges.num_nodes)
    cut = VertexCut(comm.size, random.integers(0, comm.size, edges.num_edges), owner)
    graph = DistGraph(local_part(graph_data, edges, cut, comm.rank), comm, dtype="float64")
    gradients = GradientBuffer(model, comm)
    loss = rank_loss(graph, model.train()(graph, graph.feats))
    loss.backward()
    gradients.sum()
    flat = np.concatenate([p.grad.numpy().ravel() for p in model.parameters() if p.grad is not None])
    return sum_over_ranks(comm, np.array([loss.item()])), flat
