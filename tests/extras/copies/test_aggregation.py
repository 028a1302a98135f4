"""Update on copies: every copy gets the whole sum, the gradient is exact, 0c is each rank's own arcs."""

import numpy as np
import pytest
import torch
from cut_graphs import DIRECTED, UNDIRECTED, dense_adjacency, dist_graph, gather_rows, random_cut, random_graph

from distgnn import ops
from distgnn.errors import InputError

TOLERANCE = {"rtol": 1e-11, "atol": 1e-11}  # float64 sums in another order


@pytest.mark.mpi(3)
@pytest.mark.parametrize("directed", [DIRECTED, UNDIRECTED])
@pytest.mark.parametrize("split_arcs", [False, True])
def test_all_copies_get_the_sum_and_gradients_are_exact(comm, directed, split_arcs):
    data = random_graph(5, directed=directed)
    cut = random_cut(data.edge_list(), comm.size, split_arcs=split_arcs)
    graph = dist_graph(data, comm, cut, copy_updates="held")
    num_ids = data.edge_list().num_edges * (1 if directed else 2)
    weights = np.random.default_rng(2).random(num_ids)
    matrix = dense_adjacency(data, weights) / np.maximum(dense_adjacency(data).sum(1), 1)[:, None]
    x, factor = np.random.default_rng(0).standard_normal((2, data.num_nodes, 3))
    whole = torch.from_numpy(x).requires_grad_()
    rows = whole[torch.from_numpy(graph.row_ids)]
    edge_weight = torch.from_numpy(weights[graph.local.arc_ids]).requires_grad_()
    out = ops.spmm(graph, rows, edge_weight, target_scale=graph.degree_scale("in", -1))
    np.testing.assert_allclose(out.detach().numpy(), (matrix @ x)[graph.row_ids], **TOLERANCE)
    # Every copy has a part in the loss, as it has through a layer that follows.
    (out * torch.from_numpy(factor[graph.row_ids])).sum().backward()
    factor *= np.bincount(np.concatenate(comm.allgather(graph.row_ids)), minlength=data.num_nodes)[:, None]
    total = comm.allreduce(whole.grad.numpy())
    np.testing.assert_allclose(total, matrix.T @ factor, **TOLERANCE)
    sources, targets, ids = data.edge_list().arcs()
    expected = np.zeros(num_ids)
    expected[ids] = (factor[targets] * x[sources]).sum(1) / dense_adjacency(data).sum(1)[targets]
    np.testing.assert_allclose(edge_weight.grad.numpy(), expected[graph.local.arc_ids], **TOLERANCE)


@pytest.mark.mpi(3)
def test_0c_is_each_ranks_own_arcs_and_evaluation_is_exact(comm):
    data = random_graph(6)
    graph = dist_graph(data, comm, copy_updates="0c")
    own = np.zeros((graph.num_rows, graph.num_rows))
    block = graph.forward_arcs.block
    np.add.at(own, (np.repeat(np.arange(graph.num_rows), np.diff(block.indptr)), block.indices), 1.0)
    own /= np.maximum(own.sum(1), 1)[:, None]
    x = np.random.default_rng(0).standard_normal((data.num_nodes, 2))
    rows = torch.from_numpy(x[graph.row_ids]).requires_grad_()
    calls = graph.transport.num_calls
    out = ops.spmm(graph, rows, target_scale=graph.degree_scale("in", -1))
    out.square().sum().backward()
    assert graph.transport.num_calls == calls
    np.testing.assert_allclose(out.detach().numpy(), own @ x[graph.row_ids], **TOLERANCE)
    np.testing.assert_allclose(rows.grad.numpy(), own.T @ (2 * own @ x[graph.row_ids]), **TOLERANCE)
    with torch.no_grad():
        exact = ops.spmm(graph, rows.detach(), target_scale=graph.degree_scale("in", -1))
    matrix = dense_adjacency(data) / np.maximum(dense_adjacency(data).sum(1), 1)[:, None]
    np.testing.assert_allclose(gather_rows(graph, exact), matrix @ x, **TOLERANCE)


@pytest.mark.mpi(2)
def test_what_needs_single_arcs_is_refused(comm):
    graph = dist_graph(random_graph(6), comm, copy_updates="held")
    with pytest.raises(InputError, match="need update on owners"):
        ops.edge_softmax(graph, torch.zeros(graph.num_edges(), 1, dtype=torch.float64))
