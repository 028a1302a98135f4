"""The paper's literal rule: remote partial sums count only in the epoch in which they arrive, gradients stay local."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.errors import InputError
from distgnn.ops import spmm

DELAY = 3


def mean_and_gradient(graph, epoch: int, rows: np.ndarray, grads: np.ndarray):
    """The mean over in-neighbours in one training step, and the gradient of its rows."""
    graph.step = epoch
    feats = torch.from_numpy(rows.copy()).requires_grad_()
    out = spmm(graph, feats, target_scale=graph.degree_scale("in", -1))
    out.backward(torch.from_numpy(grads))
    return out.detach().numpy(), feats.grad.numpy()


def local_matrix(graph) -> np.ndarray:
    """The rank's own arcs as a dense matrix, [V, V]."""
    block = graph.forward_arcs.block
    targets = np.repeat(np.arange(graph.num_rows), np.diff(block.indptr))
    matrix = np.zeros((graph.num_rows, graph.num_rows))
    np.add.at(matrix, (targets, block.indices), 1.0)
    return matrix


@pytest.mark.mpi(2)
@pytest.mark.parametrize("options", [{"copy_updates": "0c"}, {"algorithm": "cd-2", "copy_updates": "paper"}])
def test_edge_weights_are_not_trained(comm, options):
    graph = dist_graph(random_graph(3), comm, **options)
    weight = torch.ones(graph.num_edges(), dtype=torch.float64, requires_grad=True)
    with pytest.raises(InputError, match="trained with --copy-updates held only"):
        spmm(graph, graph.feats, weight, target_scale=graph.degree_scale("in", -1)).sum().backward()


@pytest.mark.mpi(3)
def test_still_rows(comm):
    """Rows in the bin of the epoch are exact, all others those of 0c; gradients are those of the rank's own arcs."""
    options = {"algorithm": f"cd-{DELAY}", "copy_updates": "paper"}
    graph = dist_graph(random_graph(3), comm, **options)
    exact = dist_graph(random_graph(3), comm, copy_updates="held")
    alone = dist_graph(random_graph(3), comm, copy_updates="0c")
    random = np.random.default_rng(0)
    rows = random.standard_normal((graph.num_global_nodes, 4))[graph.row_ids]
    grads = random.standard_normal((graph.num_global_nodes, 4))[graph.row_ids]
    whole, whole_gradient = mean_and_gradient(exact, 0, rows, grads)
    own, _ = mean_and_gradient(alone, 0, rows, grads)
    matrix = local_matrix(graph)
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
        sent = sum(
            piece.stop - piece.start
            for pieces in (exchange.bin.sources_owner, exchange.bin.targets_halo)
            for of_rank in pieces
            for piece in of_rank
        )
        assert graph.transport.counters.sent_bytes - before == sent * rows[0].nbytes  # forward only
    assert boundary[graph.num_owned :].all()  # every copy had its turn
    graph.drain()
