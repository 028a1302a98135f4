"""Aggregation over P ranks, and its gradients, equal a dense product over the whole graph."""

import numpy as np
import pytest
import torch
from cut_graphs import DIRECTED, UNDIRECTED, dense_adjacency, dist_graph, gather_rows, random_cut, random_graph

from distgnn import ops
from distgnn.datasets import GraphData

TOLERANCE = {"rtol": 1e-11, "atol": 1e-11}  # float64 sums in another order


@pytest.mark.mpi(3)
@pytest.mark.parametrize("directed", [DIRECTED, UNDIRECTED])
@pytest.mark.parametrize("split_arcs", [False, True])
def test_sum_and_gradient_equal_the_dense_product(comm, directed, split_arcs):
    """Plain, and with scales: global degrees on every copy."""
    data = random_graph(5, directed=directed)
    graph = dist_graph(data, comm, random_cut(data.edge_list(), comm.size, split_arcs=split_arcs))
    plain = dense_adjacency(data)
    into, out_of = np.maximum(plain.sum(1), 1), np.maximum(plain.sum(0), 1)
    scaled = plain / np.sqrt(out_of)[None, :] / into[:, None]
    x, weight = (np.random.default_rng(seed).standard_normal((data.num_nodes, 4)) for seed in (0, 1))
    degrees = graph.degree_scale("out", -0.5), graph.degree_scale("in", -1)
    for matrix, scales in ((plain, ()), (scaled, degrees)):
        rows = torch.from_numpy(x[graph.owned_ids]).requires_grad_()
        out = ops.spmm(graph, rows, None, *scales)
        (out * torch.from_numpy(weight[graph.owned_ids])).sum().backward()
        np.testing.assert_allclose(gather_rows(graph, out.detach()), matrix @ x, **TOLERANCE)
        np.testing.assert_allclose(gather_rows(graph, rows.grad), matrix.T @ weight, **TOLERANCE)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("widths", [(8, 8), (8, 4), (4, 8)])
def test_self_loops_are_a_diagonal_in_every_plan_of_a_convolution(comm, widths):
    data = random_graph(6, directed=True)
    graph = dist_graph(data, comm)
    random = np.random.default_rng(3)
    x, factors, w = (random.standard_normal(size) for size in ((data.num_nodes, widths[0]), data.num_nodes, widths))
    matrix = torch.from_numpy(dense_adjacency(data) + np.diag(factors))
    spec = ops.ConvSpec((None, None), loops=ops.SelfLoops(torch.from_numpy(factors[graph.owned_ids])))
    mine = [torch.from_numpy(one).requires_grad_() for one in (x[graph.owned_ids], w.copy())]
    whole = [torch.from_numpy(one).requires_grad_() for one in (x, w)]
    out = ops.convolve(graph, *mine, None, None, spec)
    expected = matrix @ whole[0] @ whole[1]
    np.testing.assert_allclose(gather_rows(graph, out.detach()), expected.detach(), **TOLERANCE)
    out.pow(2).sum().backward()
    expected.pow(2).sum().backward()
    np.testing.assert_allclose(gather_rows(graph, mine[0].grad), whole[0].grad, **TOLERANCE)
    np.testing.assert_allclose(comm.allreduce(mine[1].grad.numpy()), whole[1].grad, **TOLERANCE)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("directed", [DIRECTED, UNDIRECTED])
def test_gradients_of_rows_and_of_edge_weights(comm, directed):
    data = random_graph(7, directed=directed)
    graph = dist_graph(data, comm)
    edges = data.edge_list()
    num_ids = edges.num_edges * (2 if edges.two_way else 1)
    weights = np.random.default_rng(2).random(num_ids)
    out_of, into = (np.maximum(dense_adjacency(data).sum(axis), 1) for axis in (0, 1))
    matrix = dense_adjacency(data, weights) / np.sqrt(out_of)[None, :] / into[:, None]
    x = np.random.default_rng(0).standard_normal((data.num_nodes, 4))
    rows = torch.from_numpy(x[graph.owned_ids]).requires_grad_()
    local = torch.from_numpy(weights[graph.local.arc_ids]).requires_grad_()
    out = ops.spmm(graph, rows, local, graph.degree_scale("out", -0.5), graph.degree_scale("in", -1))
    ops.spmm(graph, rows.detach() + 1)  # other rows in the same halos, before the backward pass
    out.square().sum().backward()
    y = matrix @ x
    np.testing.assert_allclose(gather_rows(graph, out.detach()), y, **TOLERANCE)
    np.testing.assert_allclose(gather_rows(graph, rows.grad), matrix.T @ (2 * y), **TOLERANCE)
    sources, targets, ids = edges.arcs()
    expected = np.zeros(num_ids)
    expected[ids] = (2 * y[targets] * x[sources]).sum(1) / into[targets] / np.sqrt(out_of)[sources]
    np.testing.assert_allclose(local.grad.numpy(), expected[graph.local.arc_ids], **TOLERANCE)


@pytest.mark.mpi(2)
def test_wrong_rows_are_refused(comm):
    graph = dist_graph(random_graph(), comm)
    with pytest.raises(ValueError, match="one row per vertex"):
        ops.spmm(graph, torch.zeros(graph.num_owned + 1, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match="float32, float64 or bfloat16"):
        ops.spmm(graph, torch.zeros(graph.num_owned, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match="local arcs"):
        ops.spmm(graph, torch.zeros(graph.num_owned, 2, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))


@pytest.mark.mpi(3)
def test_all_sum_and_its_gradient(comm):
    graph = dist_graph(random_graph(), comm)
    values = torch.full((2,), float(comm.rank + 1), dtype=torch.float64, requires_grad=True)
    total = ops.all_sum(graph, values)
    (total * (comm.rank + 1)).sum().backward()
    everyone = sum(range(1, comm.size + 1))
    assert total.tolist() == [everyone, everyone]
    assert values.grad.tolist() == [everyone, everyone]


def two_way_data(same_weights: bool):
    """A directed graph with an arc back for every arc, and weights that agree or differ between the two."""
    random = np.random.default_rng(2)
    pairs = random.integers(0, 20, (60, 2))
    weight = random.random(60).astype(np.float32)
    back = weight if same_weights else random.random(60).astype(np.float32)
    return GraphData.from_arrays(
        np.concatenate([pairs, pairs[:, ::-1]]),
        num_nodes=20,
        directed=True,
        edge_weight=np.concatenate([weight, back]),
        feats=np.ones((20, 1), np.float32),
        labels=np.zeros(20, np.int64),
        name="two-way",
    )


@pytest.mark.mpi(1, 2)
@pytest.mark.parametrize("same_weights", [True, False])
def test_symmetric_arcs_with_other_weights_are_not_their_own_transpose(comm, same_weights):
    data = two_way_data(same_weights)
    edges = data.edge_list()
    cut = random_cut(edges, comm.size)
    cut.edge_part[60:] = cut.edge_part[:60]  # both arcs of a pair on one part
    graph = dist_graph(data, comm, cut)
    if comm.size == 1:
        assert graph.local.symmetric == same_weights
    matrix = dense_adjacency(data, np.asarray(data.edge_weight, np.float64))
    weight = np.random.default_rng(1).standard_normal((20, 4))
    rows = torch.from_numpy(weight[graph.owned_ids]).requires_grad_()
    out = ops.spmm(graph, rows, graph.edge_weight)
    (out * torch.from_numpy(weight[graph.owned_ids])).sum().backward()
    np.testing.assert_allclose(gather_rows(graph, rows.grad), matrix.T @ weight, rtol=1e-6)
