"""Update on copies: every copy gets the whole sum, the gradient is exact, 0c is each rank's own arcs.

The paper's literal rule: remote partial sums count only in the epoch in which they arrive, gradients stay local.
"""

import numpy as np
import pytest
import torch
from cut_graphs import DIRECTED, UNDIRECTED, dense_adjacency, dist_graph, gather_rows, random_cut, random_graph

from distgnn import ops
from distgnn.errors import InputError

TOLERANCE = {"rtol": 1e-11, "atol": 1e-11}  # float64 sums in another order
DELAY = 3
PAPER = {"algorithm": f"cd-{DELAY}", "copy_updates": "paper"}


def own_arcs(graph) -> np.ndarray:
    """The rank's own arcs as a dense matrix, [V, V]."""
    block = graph.forward_arcs.block
    targets = np.repeat(np.arange(graph.num_rows), np.diff(block.indptr))
    matrix = np.zeros((graph.num_rows, graph.num_rows))
    np.add.at(matrix, (targets, block.indices), 1.0)
    return matrix


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
    x, factor = np.random.default_rng(0).standard_normal((2, data.num_nodes, 8))
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
    own = own_arcs(graph)
    own /= np.maximum(own.sum(1), 1)[:, None]
    x = np.random.default_rng(0).standard_normal((data.num_nodes, 8))
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
    for options in ({"copy_updates": "0c"}, PAPER):
        graph = dist_graph(random_graph(3), comm, **options)
        weight = torch.ones(graph.num_edges(), dtype=torch.float64, requires_grad=True)
        with pytest.raises(InputError, match="trained with --copy-updates held only"):
            ops.spmm(graph, graph.feats, weight, target_scale=graph.degree_scale("in", -1)).sum().backward()


def mean_and_gradient(graph, epoch: int, rows: np.ndarray, grads: np.ndarray):
    """The mean over in-neighbours in one training step, and the gradient of its rows."""
    graph.step = epoch
    feats = torch.from_numpy(rows.copy()).requires_grad_()
    out = ops.spmm(graph, feats, target_scale=graph.degree_scale("in", -1))
    out.backward(torch.from_numpy(grads))
    return out.detach().numpy(), feats.grad.numpy()


@pytest.mark.mpi(3)
def test_still_rows_under_the_papers_rule(comm):
    """Rows in the bin of the epoch are exact, all others those of 0c; gradients are those of the rank's own arcs."""
    data, rules = random_graph(3), (PAPER, {"copy_updates": "held"}, {"copy_updates": "0c"})
    graph, exact, alone = (dist_graph(data, comm, **rule) for rule in rules)
    random = np.random.default_rng(0)
    rows = random.standard_normal((graph.num_global_nodes, 8))[graph.row_ids]
    grads = random.standard_normal((graph.num_global_nodes, 8))[graph.row_ids]
    whole, whole_gradient = mean_and_gradient(exact, 0, rows, grads)
    own, _ = mean_and_gradient(alone, 0, rows, grads)
    matrix = own_arcs(graph)
    boundary = np.zeros(graph.num_rows, bool)
    for epoch in range(1 + 4 * DELAY):
        before = graph.transport.counters.sent_bytes
        found, gradient = mean_and_gradient(graph, epoch, rows, grads)
        if epoch == 0:  # warm-up
            np.testing.assert_allclose(found, whole, atol=1e-12)
            np.testing.assert_allclose(gradient, whole_gradient, atol=1e-12)
            continue
        arrived = graph.forward_arcs._arrived(type("Site", (), {"epoch": epoch}))
        assert arrived.any() == (epoch > DELAY)
        boundary |= arrived
        if epoch <= DELAY:
            np.testing.assert_allclose(found, own, atol=1e-12)
        if epoch > 2 * DELAY:  # what copies are told includes the remote sums
            np.testing.assert_allclose(found, np.where(arrived[:, None], whole, own), atol=1e-12)
        degrees = np.where(arrived, graph.local.in_degrees, matrix.sum(axis=1))
        np.testing.assert_allclose(gradient, matrix.T @ (grads / np.maximum(degrees, 1)[:, None]), atol=1e-12)
        exchange = graph.forward_arcs.delayed.at(0, epoch)
        pieces = (one for way in (exchange.bin.sources_owner, exchange.bin.targets_halo) for of in way for one in of)
        sent = sum(piece.stop - piece.start for piece in pieces)
        assert graph.transport.counters.sent_bytes - before == sent * rows[0].nbytes  # forward only
    assert boundary[graph.num_owned :].all()  # every copy had its turn
    graph.drain()
