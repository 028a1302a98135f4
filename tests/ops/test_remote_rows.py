"""Rows of any vertices by global id, and their gradients, equal indexing the whole graph's rows."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph

from distgnn import ops
from distgnn.errors import InputError

TOLERANCE = {"rtol": 1e-12, "atol": 1e-12}  # float64 sums in another order


@pytest.mark.mpi(3)
def test_rows_and_gradients_equal_those_of_the_whole_graph(comm):
    data = random_graph(3)
    graph = dist_graph(data, comm)
    x = np.random.default_rng(0).standard_normal((data.num_nodes, 3))
    rows = torch.from_numpy(x[graph.row_ids]).requires_grad_()
    every = [np.random.default_rng(rank).integers(0, data.num_nodes, (rank * 40, 2)) for rank in range(comm.size)]
    ids = every[comm.rank]  # rank 0 asks for nothing
    found = ops.gather_rows_at(graph, rows, ids)
    assert found.shape == (*ids.shape, 3)
    np.testing.assert_array_equal(found.detach().numpy(), x[ids])
    weights = [np.random.default_rng(50 + rank).standard_normal((*one.shape, 3)) for rank, one in enumerate(every)]
    (found * torch.from_numpy(weights[comm.rank])).sum().backward()
    expected = np.zeros_like(x)
    for one, weight in zip(every, weights, strict=True):
        np.add.at(expected, one.reshape(-1), weight.reshape(-1, 3))
    np.testing.assert_allclose(gather_rows(graph, rows.grad), expected, **TOLERANCE)


@pytest.mark.mpi(3)
def test_ids_that_stay_are_asked_for_once_and_gradients_are_the_same_bits(comm):
    data = random_graph(4)
    graph = dist_graph(data, comm, dtype="float32")
    lookup = graph.look_up(np.random.default_rng(comm.rank).integers(0, data.num_nodes, 500))
    rows = torch.randn(graph.num_owned, 5, requires_grad=True)
    before = graph.transport.num_calls
    grads = []
    for _ in range(2):
        rows.grad = None
        lookup.table(rows)[lookup.places].square().sum().backward()
        grads.append(rows.grad.clone())
    assert graph.transport.num_calls - before == 4  # a broadcast and a reduce each: no ids
    assert torch.equal(*grads)


@pytest.mark.mpi(1, 2)
@pytest.mark.parametrize(("bad", "says"), [(-1, "-1 is no vertex"), (60, "60 is no"), (0.5, "expected integers")])
def test_an_id_that_is_no_vertex_is_an_error_on_every_rank(comm, bad, says):
    graph = dist_graph(random_graph(), comm)
    ids = np.array([bad]) if comm.rank == comm.size - 1 else np.array([0])
    with pytest.raises(InputError, match=says):
        ops.gather_rows_at(graph, torch.zeros(graph.num_owned, 2, dtype=torch.float64), ids)
