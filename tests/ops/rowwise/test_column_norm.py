"""A norm over all vertices with ReLU and dropout in one function gives what they give one after the other."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn import nn as dnn
from distgnn import ops


@pytest.mark.mpi(2)
@pytest.mark.parametrize("make", [lambda: dnn.BatchNorm1d(8), lambda: dnn.GraphNorm(8), dnn.PairNorm])
def test_what_follows_in_one_function(comm, make):
    graph, found = dist_graph(random_graph(), comm), []
    norm, epilogue = make().double(), ops.relu_dropout(graph, 0.3, site=2)
    for together in (True, False):
        rows = (graph.feats + 0).requires_grad_()
        given = epilogue if together else ops.Epilogue()
        out = norm.followed(rows, graph, given)
        out = out if together else ops.activate(graph, out, epilogue)
        found.append([out, *torch.autograd.grad(out.cos().sum(), [rows, *norm.parameters()])])
    torch.testing.assert_close(*found)
