"""Exchanges as differentiable functions: each is the other's gradient."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn import ops


@pytest.mark.mpi(3)
def test_halo_functions_are_each_others_gradient(comm):
    graph = dist_graph(random_graph(8), comm)
    rows = torch.randn(graph.num_owned, 3, dtype=torch.float64, requires_grad=True)
    halos = ops.halo_broadcast(graph, rows)
    halos.sum().backward()
    copies = np.concatenate(comm.allgather(graph.local.global_ids[graph.local.source_halo_rows]))
    counts = np.bincount(copies, minlength=graph.num_global_nodes)[graph.owned_ids]
    np.testing.assert_array_equal(rows.grad.numpy(), np.repeat(counts[:, None], 3, axis=1))
    partials = torch.ones(graph.local.num_target_halos, 2, dtype=torch.float64, requires_grad=True)
    total = ops.halo_reduce(graph, partials)
    (total * torch.from_numpy(graph.owned_ids)[:, None]).sum().backward()
    ids = graph.local.global_ids[graph.local.target_halo_rows]
    np.testing.assert_array_equal(partials.grad.numpy(), np.repeat(ids[:, None], 2, axis=1))
