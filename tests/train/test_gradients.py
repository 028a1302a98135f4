"""Summing gradients behind the backward pass gives the same bits, whatever arrives when."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph
from torch import nn

from distgnn.config import ModelConfig
from distgnn.nn import build_model
from distgnn.train import gradients as module
from distgnn.train.gradients import GradientBuffer
from distgnn.train.metrics import rank_loss


@pytest.fixture(params=[1, 200, 2**16], ids=lambda size: f"buckets of {size}")
def small_buckets(request, monkeypatch):
    monkeypatch.setattr(module, "BUCKET_NUMBERS", request.param)


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_overlapped_sums_are_the_plain_sums_to_the_bit(comm, small_buckets, norm):
    found = []
    for overlap in (False, True):
        graph = dist_graph(random_graph(1), comm, dtype="float32")
        torch.manual_seed(0)
        sizes = ModelConfig(hidden_feats=8, norm=norm)
        model = build_model(sizes, graph.num_feats, graph.num_classes).to(graph.dtype)
        buffer = GradientBuffer(model, graph.comm)
        buffer.overlap = overlap
        steps = []
        for step in range(3):
            graph.step = step
            buffer.zero()
            rank_loss(graph, model(graph, graph.feats)).backward()
            assert (buffer._started > 0) == (overlap and comm.size > 1)
            buffer.sum()
            steps.append([p.grad.numpy().copy() for p in buffer.parameters])
        found.append(steps)
    for one_step, other_step in zip(*found, strict=True):
        for one, other in zip(one_step, other_step, strict=True):
            np.testing.assert_array_equal(one, other)
    everywhere = comm.allgather(found[1])
    assert all(np.array_equal(a, b) for theirs in everywhere for a, b in zip(theirs[-1], found[1][-1], strict=True))


class Forked(nn.Module):
    """A parameter used twice, one that only rank 0 uses, one that nobody uses."""

    def __init__(self):
        super().__init__()
        self.unused, self.twice, self.mine, self.last = (nn.Parameter(torch.ones(3)) for _ in range(4))

    def forward(self, rank: int) -> torch.Tensor:
        out = (self.twice * self.last + self.twice).sum()
        return out + 5 * self.mine.sum() if rank == 0 else out


@pytest.mark.mpi(3)
def test_parameters_that_a_rank_uses_twice_or_not_at_all(comm, small_buckets):
    model = Forked()
    other = GradientBuffer(model, comm)  # another trainer's, out of step: it stays out of the way
    buffer = GradientBuffer(model, comm)
    for _ in range(2):
        buffer.zero()
        model(comm.rank).backward()
        buffer.sum()
        size = float(comm.size)
        expected = {"unused": 0.0, "twice": 2 * size, "mine": 5.0, "last": size}
        assert {name: p.grad.tolist() for name, p in model.named_parameters()} == {
            name: [value] * 3 for name, value in expected.items()
        }
    assert other._started == 0


@pytest.mark.mpi(2)
def test_gradients_that_were_replaced_are_summed_too(comm):
    """`optimizer.zero_grad()` of torch takes the views away: autograd then makes new tensors."""
    model = Forked()
    buffer = GradientBuffer(model, comm)
    for _ in range(2):
        buffer.zero()
        for parameter in model.parameters():
            parameter.grad = None
        model(comm.rank).backward()
        buffer.sum()
        assert model.last.grad.tolist() == [2.0] * 3 and model.mine.grad.tolist() == [5.0] * 3
        assert model.unused.grad.tolist() == [0.0] * 3


@pytest.mark.mpi(2)
def test_all_ranks_begin_with_the_parameters_of_rank_0(comm):
    """And without `zero` no sum starts early."""
    model = Forked()
    with torch.no_grad():
        model.last.fill_(comm.rank + 1)
    buffer = GradientBuffer(model, comm)
    assert model.last.tolist() == [1.0] * 3
    model(comm.rank).backward()
    assert not buffer._started
    buffer.sum()
    assert model.last.grad.tolist() == [2.0] * 3
