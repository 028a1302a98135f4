"""The installation checks itself: what is wrong on one rank, or not as in one process, is said on all."""

import pytest
import torch
from cut_graphs import random_graph
from torch import nn

from distgnn.nn import GraphSAGE, SAGEConv
from distgnn.train.self_check import check_installation


class PerRank(nn.Module):
    """Its norm is of one rank's rows."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = SAGEConv(8, 4, "mean"), nn.BatchNorm1d(4)

    def forward(self, graph, feats):
        return self.norm(self.conv(graph, feats))


@pytest.mark.mpi(2)
def test_faults_are_found_on_all_ranks(comm):
    right, odd = [("spmm", True, 1e-7)], comm.rank == 1
    for results, threads, kind, bad in (
        (right, 0, lambda: GraphSAGE(8, 8, 4), ""),
        ([("spmm", not odd, 0.5)], 0, lambda: GraphSAGE(8, 8, 4), "kernels"),
        (right, odd, lambda: GraphSAGE(8, 8, 4), "threads"),
        (right, 0, PerRank, "training step"),
    ):
        torch.manual_seed(0)
        counted = lambda more=threads: torch.get_num_threads() + more  # noqa: E731
        report = check_installation(results, counted, random_graph(1), kind())
        assert [name for name, found in report.rows if found.startswith("FAILED")] == [bad] * bool(bad)
        assert report.ok == (not bad) and comm.allgather(report.rows) == [report.rows] * 2
