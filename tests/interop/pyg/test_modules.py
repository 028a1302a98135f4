"""Norms and dropout of PyG, hooks of layers, and the columns that scripts for PyG read."""

import copy

import pytest
import torch
from against_dgl import Inputs, num_arc_ids, run_rows, run_whole, same
from cut_graphs import dist_graph, random_graph, whole_graph
from torch import nn
from torch.nn import functional

from distgnn.graph.face.row_graph import with_rows
from distgnn.rows import local_of

gnn = pytest.importorskip("torch_geometric.nn")

NORMS = {
    "BatchNorm": lambda: gnn.BatchNorm(8),
    "GraphNorm": lambda: gnn.GraphNorm(8),
    "PairNorm": lambda: gnn.PairNorm(scale=2.0, scale_individually=True),
    "InstanceNorm": lambda: gnn.InstanceNorm(8, affine=True, track_running_stats=True),
    "LayerNorm graph": lambda: gnn.LayerNorm(8),
    "LayerNorm node": lambda: gnn.LayerNorm(8, mode="node"),
    "MeanSubtractionNorm": lambda: gnn.MeanSubtractionNorm(),
    "GraphSizeNorm": lambda: gnn.GraphSizeNorm(),
    "DiffGroupNorm": lambda: gnn.DiffGroupNorm(8, 3),
}


@pytest.mark.mpi(2)
def test_a_norm_over_vertices_has_the_statistics_of_all_ranks(comm):
    data = random_graph(3)
    graph, inputs = with_rows(dist_graph(data, comm)), Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    for name, make in NORMS.items():
        torch.manual_seed(1)
        model = nn.Sequential(make(), nn.Linear(8, 4)).double()
        for parameter in model.parameters():
            nn.init.normal_(parameter)
        plain, call = copy.deepcopy(model), lambda model, graph, inputs: model(inputs.feats)
        expected = run_whole(data, plain, inputs, call, library="pyg")
        same(run_rows(graph, model, inputs, call), expected)
        for key, buffer in plain.named_buffers():
            torch.testing.assert_close(dict(model.named_buffers())[key], buffer, msg=name)


class Dropping(nn.Module):
    """Dropout as scripts for PyG have it: the function, on vertices, attention with and without loops, weights."""

    def __init__(self):
        super().__init__()
        self.first = gnn.GATConv(8, 2, 4, dropout=0.4)
        self.second = gnn.TransformerConv(8, 8, dropout=0.3)
        self.spread = gnn.APPNP(2, 0.1, dropout=0.3)
        self.last = gnn.ARMAConv(8, 4, num_stacks=2, dropout=0.3)
        self.drop = nn.Dropout(0.2)

    def forward(self, x, edge_index):
        x = functional.dropout(x, p=0.5, training=self.training)
        x = self.drop(functional.elu(self.first(x, edge_index)))
        x = functional.relu(self.second(x, edge_index))
        return self.last(self.spread(x, edge_index), edge_index)


@pytest.mark.mpi(3)
def test_functional_dropout_does_not_depend_on_the_number_of_ranks(comm):
    data = random_graph(4)
    torch.manual_seed(2)
    model = Dropping().double()

    def rows_of(graph):
        torch.manual_seed(3)
        made = [model.train(mode)(graph.x, graph).detach() for mode in (True, True, False)]
        return [one.whole() for one in made]

    one, again, still = rows_of(with_rows(whole_graph(data)))
    assert abs(one - again).max() > 1e-3 and abs(one - still).max() > 1e-3  # a mask of its own each time
    for mine, theirs in zip(rows_of(with_rows(dist_graph(data, comm))), (one, again, still), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-10)


class Hidden(nn.Module):
    """ReLU in all its forms, between a convolution and dropout, a residual, a norm, and at the end."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([gnn.GCNConv(8, 8), gnn.SAGEConv(8, 8), gnn.GCNConv(8, 8), gnn.SAGEConv(8, 8)])
        self.norm, self.act, self.drop = nn.LayerNorm(8), nn.ReLU(), nn.Dropout(0.4)

    def forward(self, x, edge_index):
        first, second, third, last = self.convs
        x = self.drop(first(x, edge_index).relu())
        x = functional.dropout(functional.relu(second(x, edge_index)), 0.3, self.training)
        kept = self.act(self.norm(third(x, edge_index)))
        x = functional.relu(last(self.drop(kept), edge_index) + kept, inplace=True)
        return torch.relu(x)


@pytest.mark.mpi(3)
def test_relu_and_dropout_in_one_pass_are_those_of_torch(comm, monkeypatch):
    graph = with_rows(dist_graph(random_graph(4), comm))
    torch.manual_seed(2)
    model = Hidden().double()

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


@pytest.mark.mpi(2)
@pytest.mark.parametrize("layer", ["GCNConv", "SAGEConv", "GATConv"])
def test_hooks_see_and_change_messages(comm, layer):
    """A layer with hooks runs as PyG wrote it: what they change counts."""
    data = random_graph(5)
    torch.manual_seed(0)
    conv = getattr(gnn, layer)(8, 4).double()
    conv.register_message_forward_hook(lambda module, inputs, messages: messages * 2 + 1)
    conv.register_propagate_forward_hook(lambda module, inputs, out: out - 3)
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))

    def call(module, graph, inputs):
        return module(inputs.feats, graph if hasattr(graph, "local") else graph.edge_index)

    expected = run_whole(data, copy.deepcopy(conv), inputs, call, library="pyg")
    same(run_rows(with_rows(dist_graph(data, comm)), conv, inputs, call), expected)


def test_a_script_for_pyg_finds_its_columns():
    data = random_graph(6, weighted=True, typed=True, directed=True)
    graph, theirs = whole_graph(data), data.to_pyg()
    order = torch.from_numpy(graph.owned_ids)
    for name in ("x", "y", "train_mask", "val_mask", "test_mask", "node_type"):
        torch.testing.assert_close(getattr(graph, name), getattr(theirs, name)[order], check_dtype=False)
    arcs = torch.from_numpy(graph.local.arc_ids.copy())
    for name in ("edge_weight", "edge_attr", "edge_type"):
        torch.testing.assert_close(getattr(graph, name), getattr(theirs, name)[arcs], check_dtype=False)
    assert repr(with_rows(graph).edge_index) == f"ArcIndex([2, {theirs.num_edges}], 1 ranks)"
