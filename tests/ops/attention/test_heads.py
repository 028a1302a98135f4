"""Weights and dot products of arcs, head by head: each is the transpose of the other, over all ranks."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn import ops


@pytest.mark.mpi(3)
def test_dots_are_the_gradient_of_the_weights(comm):
    """<sum of w x, y> = <w, <x, y> of every arc>, which is linear in each of them."""
    graph, random = dist_graph(random_graph(3), comm), np.random.default_rng(1)
    x, y = (torch.from_numpy(random.standard_normal((60, 4, 2))[graph.owned_ids]).requires_grad_() for _ in range(2))
    weight = torch.from_numpy(random.standard_normal((600, 4))[graph.local.arc_ids]).requires_grad_()
    of_sums, of_dots = (ops.spmm_heads(graph, x, weight) * y).sum(), (ops.pair_dots(graph, x, y) * weight).sum()
    assert comm.allreduce(of_sums.item()) == pytest.approx(comm.allreduce(of_dots.item()), rel=1e-12)
    grads = [torch.autograd.grad(value, [x, y, weight]) for value in (of_sums, of_dots)]
    torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-12)
