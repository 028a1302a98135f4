"""The backward pass of a convolution: whose gradient it writes over, and which rows it multiplies."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn import ops


@pytest.mark.mpi(1)
@pytest.mark.parametrize("activation", [True, False])  # nothing between the caller's gradient and the products
def test_a_gradient_that_others_see_is_not_written_over(comm, activation):
    graph = dist_graph(random_graph(), comm)
    feats = torch.randn(graph.num_owned, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(8, 8, dtype=torch.float64, requires_grad=True)
    spec = ops.ConvSpec((None, None), None, *([ops.relu_dropout(graph)] if activation else []))
    out = ops.convolve(graph, feats, weight, None, None, spec)
    grad = torch.randn_like(out)
    kept = grad.clone()
    out.backward(grad)
    assert torch.equal(grad, kept)
    with pytest.raises(RuntimeError, match="second time"):
        out.backward(grad)


@pytest.mark.mpi(3)
def test_late_rows_have_the_weight_gradient_of_what_was_used(comm):
    """Equal widths under cd-r: (A x)' g of the A x that the forward pass used, not x' A' g of other epochs' rows."""
    graph = dist_graph(random_graph(2), comm, algorithm="cd-2", warmup_epochs=1)
    for epoch in range(5):
        graph.step = epoch
        torch.manual_seed(10 * epoch + comm.rank)
        feats = torch.randn(graph.num_owned, 8, dtype=torch.float64, requires_grad=True)
        weight = torch.eye(8, dtype=torch.float64, requires_grad=True)  # so that the result is A x
        out = ops.convolve(graph, feats, weight, None, None, ops.ConvSpec((None, None)))
        used, grad = out.detach().clone(), torch.randn(graph.num_owned, 8, dtype=torch.float64)
        out.backward(grad)
        torch.testing.assert_close(weight.grad, used.T @ grad)
    graph.drain()
