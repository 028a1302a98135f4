"""A layer on its own gives up what it kept: a second backward pass makes it again, or is refused."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn import ops
from distgnn.errors import RunError


@pytest.mark.mpi(2)
@pytest.mark.parametrize(("how", "says"), [("again", "runs for the second time"), ("written", "written to in place")])
def test_exact_rows_are_made_again_and_late_ones_are_not(comm, how, says):
    for algorithm in ("cd-0", "cd-2"):
        graph = dist_graph(random_graph(), comm, algorithm=algorithm)
        feats, weight = (graph.feats + 1).requires_grad_(), torch.eye(8, dtype=torch.float64).requires_grad_()
        found = []
        for written in (False, how == "written"):
            if not found or written:
                graph.step = 1
                spec = ops.ConvSpec((None, None), None, ops.relu_dropout(graph, 0.3))
                out = ops.convolve(graph, feats, weight, None, None, spec)
            if written:
                with torch.no_grad():
                    out.zero_()
            if found and algorithm != "cd-0":
                with pytest.raises(RunError, match=says):
                    out.backward(torch.ones_like(out))
                continue
            found.append(torch.autograd.grad(out, [feats, weight], torch.ones_like(out), retain_graph=True))
        graph.drain()
        assert algorithm != "cd-0" or all(map(torch.equal, *found))
