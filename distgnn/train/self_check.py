"""The installation checks itself: kernels against numpy, and one training step on all ranks against one process."""

from dataclasses import dataclass, field

import numpy as np
import torch
from mpi4py import MPI

from distgnn.comm import sum_over_ranks
from distgnn.config import num_threads
from distgnn.graph import DistGraph
from distgnn.load import use_threads
from distgnn.partition import VertexCut, local_part
from distgnn.train.gradients import GradientBuffer
from distgnn.train.loss import rank_loss
from distgnn.train.machine import versions

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


def check_installation(kernel_results: list[tuple], graph_data, model: torch.nn.Module) -> Report:
    """Check kernels, MPI and one exact training step on the ranks that are there.

    Collective: yes.

    Args:
        kernel_results: what `kernels.self_check` found on this rank.
        graph_data: a small `GraphData` with features, labels and a train split.
        model: takes (graph, feats) and gives logits; the same on every rank.
    """
    comm = MPI.COMM_WORLD
    use_threads(num_threads())
    report = Report(comm.rank)
    _check_kernels(comm, kernel_results, report)
    names = versions()
    total = comm.allreduce(comm.rank)
    report.add("MPI", total == comm.size * (comm.size - 1) // 2, f"{names['mpi']}, {comm.size} ranks")
    report.add("threads", True, f"{num_threads()} per rank; torch {torch.get_num_threads()}")
    report.add("versions", True, ", ".join(f"{name} {version}" for name, version in names.items() if name != "mpi"))
    _check_step(comm, graph_data, model.double(), report)
    return report


def _check_kernels(comm: MPI.Comm, results: list[tuple], report: Report) -> None:
    wrong = [name for name, ok, _ in results if not ok]
    wrong = sorted({name for names in comm.allgather(wrong) for name in names})
    worst = comm.allreduce(max(error for _, _, error in results), op=MPI.MAX)
    finding = f"{len(results)} kernels against numpy, largest relative error {worst:.1e}"
    report.add("kernels", not wrong, f"wrong: {', '.join(wrong)}" if wrong else finding)


def _check_step(comm: MPI.Comm, graph_data, model: torch.nn.Module, report: Report) -> None:
    """Loss and gradient of one step with dropout: all ranks against this rank alone."""
    many = _loss_and_gradient(comm, graph_data, model)
    alone = _loss_and_gradient(MPI.COMM_SELF, graph_data, model)
    error = max(np.abs(one - other).max() / np.abs(other).max() for one, other in zip(many, alone, strict=True))
    error = comm.allreduce(error, op=MPI.MAX)
    finding = f"{comm.size} ranks against one process, loss and gradient differ by {error:.1e} (float64)"
    report.add("training step", bool(error <= TOLERANCE), finding)


def _loss_and_gradient(comm: MPI.Comm, graph_data, model: torch.nn.Module) -> tuple[np.ndarray, np.ndarray]:
    edges = graph_data.edge_list()
    random = np.random.default_rng(0)
    owner = random.integers(0, comm.size, edges.num_nodes)
    cut = VertexCut(comm.size, random.integers(0, comm.size, edges.num_rows), owner)
    graph = DistGraph(local_part(graph_data, edges, cut, comm.rank), comm, dtype="float64")
    gradients = GradientBuffer(model, comm)
    loss = rank_loss(graph, model.train()(graph, graph.feats))
    loss.backward()
    gradients.sum()
    flat = np.concatenate([parameter.grad.numpy().ravel() for parameter in model.parameters()])
    return sum_over_ranks(comm, np.array([loss.item()])), flat
