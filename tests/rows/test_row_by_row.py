"""Functions number by number, or within a row: value and every gradient of whole tensors; ReLU beside dropout."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cut_graphs import dist_graph, random_graph
from row_scenes import CLASS_WEIGHT, W, same_on_rows
from torch import nn

from distgnn.graph.face.row_graph import with_rows
from distgnn.rows import local_of


@pytest.mark.mpi(1, 3)
def test_value_and_gradients(comm):
    functions = [
        lambda s, x: F.group_norm(x, 2),
        lambda s, x: F.threshold(x, 0.1, 20.0),
        lambda s, x: torch.searchsorted(CLASS_WEIGHT.sort().values, x[:, 0].contiguous()),
        lambda s, x: F.interpolate(x.view(-1, 2, 4), scale_factor=2),
        lambda s, x: F.dropout1d(x[:, None], 0.0, inplace=True)[:, 0],
        lambda s, x: F.rrelu(x.clone(), 0.25, 0.25, training=True, inplace=True),
        lambda s, x: F.prelu(x, torch.tensor([0.2], dtype=torch.float64)),
        lambda s, x: F.embedding(s.y, W),
        lambda s, x: torch.from_numpy(np.asarray(x.detach())),
        lambda s, x: torch.tensor(s.y.tolist()),
    ]
    same_on_rows(comm, functions)


class Hidden(nn.Module):
    """ReLU in all its forms, between a convolution and dropout, a residual, a norm, and at the end."""

    def __init__(self, gnn):
        super().__init__()
        self.convs = nn.ModuleList([gnn.GCNConv(8, 8), gnn.SAGEConv(8, 8), gnn.GCNConv(8, 8), gnn.SAGEConv(8, 8)])
        self.norm, self.act, self.drop = nn.LayerNorm(8), nn.ReLU(), nn.Dropout(0.4)

    def forward(self, x, edge_index):
        first, second, third, last = self.convs
        x = self.drop(first(x, edge_index).relu())
        x = F.dropout(F.relu(second(x, edge_index)), 0.3, self.training)
        kept = self.act(self.norm(third(x, edge_index)))
        x = F.relu(last(self.drop(kept), edge_index) + kept, inplace=True)
        return torch.relu(x)


@pytest.mark.mpi(3)
def test_relu_and_dropout_in_one_pass_are_those_of_torch(comm, monkeypatch):
    gnn, graph = pytest.importorskip("torch_geometric.nn"), with_rows(dist_graph(random_graph(4), comm))
    torch.manual_seed(2)
    model = Hidden(gnn).double()

    def found():
        torch.manual_seed(5)
        rows = graph.x.clone().requires_grad_()
        out = model(rows, graph)
        out.pow(2).sum().backward()
        grads = [rows.grad, *(parameter.grad for parameter in model.parameters())]
        model.zero_grad()
        return [out.detach(), *grads]

    ours = found()
    monkeypatch.setattr("distgnn.rows.row_by_row.FLOATS", ())  # torch's own
    for mine, theirs in zip(ours, found(), strict=True):
        torch.testing.assert_close(local_of(mine), local_of(theirs), rtol=1e-10, atol=1e-12)
