"""Backward passes of rows of all ranks: several losses and some inputs, as in plain torch."""

import pytest
import torch
import torch.nn.functional as F
from row_scenes import CLASSES, D, W, scenes

from distgnn.errors import InputError, RunError

BACKWARD = {
    "a list": lambda first, second, w: torch.autograd.backward([first, second]),
    "one": lambda first, second, w: torch.autograd.backward(first),
    "with gradients": lambda first, second, w: torch.autograd.backward(
        [first, second], grad_tensors=[torch.tensor(2.0).double(), torch.tensor(3.0).double()]
    ),
    "rows and a loss": lambda first, second, w: torch.autograd.backward([w[2], second], [torch.ones_like(w[2]), None]),
    "inputs": lambda first, second, w: (first + second).backward(inputs=[w[0]]),
    "one input": lambda first, second, w: torch.autograd.backward([first, second], inputs=w[0]),
    "kept": lambda first, second, w: [(first + second).backward(retain_graph=True) for _ in range(2)],
}


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("name", BACKWARD)
def test_backward_of_several_losses_and_of_some_inputs(comm, name):
    found = []
    for scene in scenes(comm):
        weights = [W.clone().requires_grad_(), W.clone().requires_grad_()]
        outputs = [(scene.x @ one).sigmoid() for one in weights]
        BACKWARD[name](outputs[0].mean(), outputs[1].square().sum(), [*weights, outputs[0]])
        found.append([one.grad for one in weights])
    for plain, ours in zip(*found, strict=True):
        assert (plain is None) == (ours is None)  # of what was not asked for there is none
        if plain is not None:
            torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.mpi(3)
def test_ranks_with_other_weights_are_refused(comm):
    _, rows = scenes(comm)
    torch.manual_seed(comm.rank)
    model = torch.nn.Linear(D, CLASSES).double()
    with pytest.raises(RunError, match=r"ranks differ in the weights.*broadcast_parameters"):
        F.cross_entropy(model(rows.x), rows.y).backward()


@pytest.mark.mpi(3)
def test_a_second_derivative_is_refused(comm):
    _, rows = scenes(comm)
    with pytest.raises(InputError, match="leave create_graph=True out"):
        (rows.x @ W.clone().requires_grad_()).pow(3).sum().backward(create_graph=True)
