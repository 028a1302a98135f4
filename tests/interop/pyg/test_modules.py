"""Norms and dropout of PyG after `distribute`, hooks of layers, and the columns that scripts for PyG read."""

import copy

import pytest
import torch
from against_dgl import Inputs, num_arc_ids, run_ranks, run_whole, same
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph
from torch import nn
from torch.nn import functional

from distgnn import nn as dnn
from distgnn.errors import InputError

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


def on_rows(model, graph, inputs):
    return model(inputs.feats)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("name", NORMS)
def test_a_norm_over_vertices_has_the_statistics_of_all_ranks(comm, name):
    data = random_graph(3)
    torch.manual_seed(1)
    model = nn.Sequential(NORMS[name](), nn.Linear(8, 4)).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    plain = copy.deepcopy(model)
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    expected = run_whole(data, plain, inputs, on_rows, library="pyg")
    graph = dist_graph(data, comm)
    dnn.distribute(model, graph)
    same(run_ranks(graph, model, inputs, on_rows), expected)
    assert model.state_dict().keys() == plain.state_dict().keys()
    for name, buffer in plain.named_buffers():
        if not name.endswith("num_batches_tracked"):
            torch.testing.assert_close(dict(model.named_buffers())[name], buffer)


@pytest.mark.mpi(2)
def test_a_norm_that_has_no_form_for_ranks_is_refused(comm):
    graph = dist_graph(random_graph(3), comm)
    model = nn.Sequential(gnn.norm.HeteroBatchNorm(8, 2))
    with pytest.raises(
        InputError, match="HeteroBatchNorm: its statistics would be per rank; use BatchNorm or GraphNorm"
    ):
        dnn.distribute(model, graph)
    model = dnn.distribute(nn.Sequential(gnn.GraphNorm(8).double()), graph)
    with pytest.raises(InputError, match="a DistGraph is one graph: call the norm without batch"):
        model[0](graph.x, torch.zeros(len(graph.x), dtype=torch.long))


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
        module = dnn.distribute(copy.deepcopy(model), graph)
        graph.step = 3
        out = [gather_rows(graph, module(graph.x, graph).detach()) for _ in range(2)]
        return [*out, gather_rows(graph, module.eval()(graph.x, graph).detach())]

    one, again, still = rows_of(whole_graph(data))
    assert abs(one - again).max() > 1e-3 and abs(one - still).max() > 1e-3  # a mask of its own each time
    for mine, theirs in zip(rows_of(dist_graph(data, comm)), (one, again, still), strict=True):
        torch.testing.assert_close(torch.from_numpy(mine), torch.from_numpy(theirs), rtol=1e-9, atol=1e-10)


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
    data = random_graph(4)
    graph = dist_graph(data, comm)
    torch.manual_seed(2)
    model = dnn.distribute(Hidden().double(), graph)

    def found():
        graph.step = 5
        rows = graph.x.clone().requires_grad_()
        out = model(rows, graph)
        out.pow(2).sum().backward()
        grads = [rows.grad, *(parameter.grad for parameter in model.parameters())]
        model.zero_grad()
        return [out.detach(), *grads]

    ours = found()
    monkeypatch.setattr("distgnn.nn.dropout.RELU", ())  # torch's own
    for mine, theirs in zip(ours, found(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def test_dropout_of_other_rows_is_refused():
    graph = whole_graph(random_graph(4))

    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = gnn.SAGEConv(8, 4)

        def forward(self, x):
            return functional.dropout(x[:5])

    with pytest.raises(InputError, match="neither this rank's 60 vertices nor its arcs"):
        dnn.distribute(Other(), graph)(graph.x)


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
    same(run_ranks(dist_graph(data, comm), conv, inputs, call), expected)


def test_a_script_for_pyg_finds_its_columns():
    data = random_graph(6, weighted=True, typed=True, directed=True)
    graph, theirs = whole_graph(data), data.to_pyg()
    order = torch.from_numpy(graph.owned_ids)
    for name in ("x", "y", "train_mask", "val_mask", "test_mask", "node_type"):
        torch.testing.assert_close(getattr(graph, name), getattr(theirs, name)[order], check_dtype=False)
    arcs = torch.from_numpy(graph.local.arc_ids.copy())
    for name in ("edge_weight", "edge_attr", "edge_type"):
        torch.testing.assert_close(getattr(graph, name), getattr(theirs, name)[arcs], check_dtype=False)
    assert repr(graph.edge_index) == f"ArcIndex([2, {theirs.num_edges}], 1 ranks)"
