"""ReLU and dropout one after the other are one pass over the rows before, if nobody wrote to them."""

import numpy as np
import pytest
import torch
from cut_graphs import random_graph, whole_graph

from distgnn import ops


@pytest.fixture
def graph():
    return whole_graph(random_graph())


def hidden(graph, width: int = 5) -> torch.Tensor:
    rows = np.random.default_rng(0).standard_normal((graph.num_owned, width))
    return torch.from_numpy(rows).requires_grad_() * 1


def test_relu_leaves_no_node_before_a_dropout(graph):
    rows = hidden(graph)
    out = ops.dropout(graph, ops.relu(graph, rows), 0.5, site=0)
    assert out.grad_fn.next_functions[0][0] is rows.grad_fn
    mask = ops.dropout(graph, torch.ones_like(rows), 0.5, site=0)
    torch.testing.assert_close(out, rows.relu() * mask)
    leaf = rows.grad_fn.next_functions[0][0].variable
    out.sum().backward()
    torch.testing.assert_close(leaf.grad, (rows > 0) * mask)


@pytest.mark.parametrize("written", ["rows", "result"])
def test_what_was_written_to_in_between_counts(graph, written):
    rows = hidden(graph)
    result = ops.relu(graph, rows)
    with torch.no_grad():
        (rows if written == "rows" else result).mul_(0)
    expected = result.detach().clone()
    out = ops.dropout(graph, result, 0.5, site=0)
    torch.testing.assert_close(out, expected * ops.dropout(graph, torch.ones_like(rows), 0.5, site=0))


def test_a_residual_gets_its_own_gradient(graph):
    rows = hidden(graph)
    result = ops.relu(graph, rows)
    first, second = (ops.dropout(graph, result, 0.5, site) for site in (0, 1))
    masks = [ops.dropout(graph, torch.ones_like(rows), 0.5, site) for site in (0, 1)]
    (grad,) = torch.autograd.grad((first + second + result).sum(), rows)
    torch.testing.assert_close(grad, (rows > 0) * (masks[0] + masks[1] + 1))


def test_relu_has_a_second_derivative(graph):
    rows = hidden(graph)
    (grad,) = torch.autograd.grad(ops.relu(graph, rows).pow(2).sum(), rows, create_graph=True)
    torch.testing.assert_close(grad, 2 * rows.relu())
    (again,) = torch.autograd.grad(grad.pow(2).sum(), rows)
    torch.testing.assert_close(again, 8 * rows.relu())
