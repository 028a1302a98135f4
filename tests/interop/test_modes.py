"""Layers of PyG and DGL on P ranks under torch's modes equal the same layers outside them on the whole graph."""

import copy
import importlib

import pytest
import torch
from against_dgl import Inputs, default_float64, num_arc_ids, run_ranks, run_rows, run_whole, same
from cut_graphs import UNDIRECTED, dist_graph, random_graph
from torch.utils.checkpoint import checkpoint

from distgnn import nn as dnn
from distgnn.graph.face.row_graph import with_rows

LIBRARIES = {"pyg": "torch_geometric", "dgl": "dgl"}
LAYERS = {
    "pyg": (
        *("GCNConv", "SAGEConv", "GATConv", "GATConv mean of heads", "GATv2Conv", "TransformerConv", "RGCNConv"),
        *("GINConv", "GraphConv max", "APPNP", "ChebConv", "GCN2Conv", "own layer: any other message, softmax"),
    ),
    "dgl": ("sage mean", "sage pool", "gin max", "sg", "gat", "gatv2", "dot gat", "rgcn", "edge gat"),
}


def case(library: str, name: str):
    """(layer in float64, its call)."""
    pytest.importorskip(LIBRARIES[library])
    torch.manual_seed(4)
    make, call = importlib.import_module(f"{library}_layers").cases()[name]
    return make().double(), call


def beside_whole(comm, library, name, mode, plain=lambda call: call):
    data = random_graph(12, directed=UNDIRECTED)
    layer, call = case(library, name)
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    with default_float64():
        expected = run_whole(data, copy.deepcopy(layer), inputs, plain(call), library=library)
        graph = dist_graph(data, comm)
        if library == "pyg":
            found = run_rows(with_rows(graph), layer, inputs, mode(call))
        else:
            found = run_ranks(graph, dnn.distribute(layer, graph), inputs, mode(call))
        same(found, expected)


def in_place(call):
    return lambda *arguments: call(*arguments).mul_(2).relu_()


def out_of_place(call):
    return lambda *arguments: (call(*arguments) * 2).relu()


def once_in_inference(call):
    """What a layer keeps from an evaluation in inference mode serves the training after it."""

    def run(*arguments):
        with torch.inference_mode():
            call(*arguments)
        return call(*arguments)

    return run


MODES = {
    "in place": (in_place, out_of_place),
    "checkpoint": (
        lambda call: lambda *arguments: checkpoint(call, *arguments, use_reentrant=False),
        lambda call: call,
    ),
    "after inference mode": (once_in_inference, lambda call: call),
}


@pytest.mark.mpi(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("library", LAYERS)
def test_layers_give_the_same_in_a_mode(comm, library, mode):
    for name in LAYERS[library]:
        beside_whole(comm, library, name, *MODES[mode])


@pytest.mark.mpi(1)
@pytest.mark.filterwarnings("ignore")  # of torch's compiler
def test_a_compiled_layer_gives_the_same(comm):
    """With plain tensors; rows: tests/rows/test_modes.py."""
    torch._dynamo.reset()
    beside_whole(comm, "dgl", "gat", lambda call: torch.compile(call, backend="aot_eager"))
