"""Layers with hooks, and with linear layers that are more than a weight, run as PyG wrote them."""

import pytest
import torch
from against_dgl import default_float64, same_layer
from cut_graphs import random_graph
from typed_parts import random_typed, typed_graph

gnn = pytest.importorskip("torch_geometric.nn")


def call(module, graph, inputs):
    return module(inputs.feats, graph if hasattr(graph, "local") else graph.edge_index)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("layer", ["GCNConv", "SAGEConv", "GATConv"])
def test_hooks_see_and_change_messages(comm, layer):
    """A layer with hooks runs as PyG wrote it: what they change counts."""
    data = random_graph(5)
    torch.manual_seed(0)
    conv = getattr(gnn, layer)(8, 4).double()
    conv.register_message_forward_hook(lambda module, inputs, messages: messages * 2 + 1)
    conv.register_propagate_forward_hook(lambda module, inputs, out: out - 3)

    same_layer(comm, data, conv, call, "pyg")


def adapted(linear):
    """LoRA: a product of two small matrices beside a weight that stands still."""

    class Adapter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.base, self.weight, self.bias = linear, linear.weight, linear.bias
            self.down, self.up = torch.nn.Linear(8, 2, bias=False), torch.nn.Linear(2, len(linear.weight), bias=False)

        def forward(self, rows):
            return self.base(rows) + self.up(self.down(rows))

    return Adapter()


@pytest.mark.mpi(2)
@pytest.mark.parametrize("how", ["hook", "weight", "adapter"])
@pytest.mark.parametrize("layer", ["GCNConv", "SAGEConv", "GATConv"])
def test_a_linear_layer_inside_is_called_where_it_is_more_than_its_weight(comm, layer, how):
    torch.manual_seed(0)
    conv = getattr(gnn, layer)(8, 4)
    for name, linear in [(name, one) for name, one in conv.named_children() if hasattr(one, "weight")]:
        if how == "hook":
            linear.register_forward_hook(lambda module, given, out: 2 * out.sigmoid())
        elif how == "adapter":
            setattr(conv, name, adapted(linear))
        else:  # made before each call, as `prune` and the hooks of norms do
            linear.weight_orig = linear.weight
            del linear.weight
            linear.weight = linear.weight_orig.detach()
            linear.register_forward_pre_hook(lambda module, given: setattr(module, "weight", module.weight_orig.tanh()))
    conv = conv.double()

    same_layer(comm, random_graph(5), conv, call, "pyg")


def changed(conv, what: str):
    """A layer whose messages are others, by what is put on this layer alone."""
    message, propagate = conv.message, conv.propagate
    if what == "message":
        conv.message = lambda *args, **kwargs: 2 * message(*args, **kwargs)
    elif what == "propagate":
        conv.propagate = lambda *args, **kwargs: 3 * propagate(*args, **kwargs)
    elif what == "aggregator":
        conv.aggr_module = gnn.aggr.MaxAggregation()
    else:

        class Thrice(type(conv)):
            def propagate(self, *args, **kwargs):
                return 3 * super().propagate(*args, **kwargs)

        conv.__class__ = Thrice
    return conv


@pytest.mark.mpi(2)
@pytest.mark.parametrize("what", ["message", "propagate", "aggregator", "class"])
def test_what_is_put_on_a_layer_is_not_passed_over(comm, what):
    with_scores = ("GATConv", "GATv2Conv", "TransformerConv") if what != "class" else ()  # PyG cannot copy such ones
    for layer in ("GCNConv", "SAGEConv", *with_scores):
        torch.manual_seed(0)
        conv = changed(getattr(gnn, layer)(8, 4).double(), what)
        same_layer(comm, random_graph(5), conv, call, "pyg")


@pytest.mark.mpi(2)
@default_float64()
@pytest.mark.parametrize("name", ["HeteroConv", "HGTConv"])
def test_layers_over_types_call_the_linear_layers_inside_them(comm, name):
    whole = random_typed(0)
    graph, data = typed_graph(whole, comm), whole.to_pyg()
    rows = {kind: data[kind].x.double() for kind in data.node_types}
    widths = {kind: one.shape[1] for kind, one in rows.items()}
    torch.manual_seed(0)
    if name == "HGTConv":
        conv = gnn.HGTConv(widths, 8, data.metadata(), 2)
    else:
        ends = {key: (widths[key[0]], widths[key[2]]) for key in data.edge_types}
        conv = gnn.HeteroConv({key: gnn.SAGEConv(pair, 4) for key, pair in ends.items()})
    for linear in [module for module in conv.modules() if isinstance(module, gnn.Linear | torch.nn.Linear)]:
        linear.register_forward_hook(lambda module, given, out: out.sigmoid())
    expected, found = conv(rows, data.edge_index_dict), conv(graph.x_dict, graph.edge_index_dict)
    for kind, one in expected.items():
        torch.testing.assert_close(found[kind].whole(), one, rtol=1e-9, atol=1e-9)
