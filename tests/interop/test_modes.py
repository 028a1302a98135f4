"""Layers of PyG and DGL on P ranks under torch's modes equal the same layers outside them on the whole graph."""

import copy
import importlib

import pytest
import torch
from against_dgl import Inputs, default_float64, made, num_arc_ids, run_ranks, run_rows, run_whole, same
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
    make, call = importlib.import_module(f"{library}_layers").cases()[name]
    return made(make), call


def beside_whole(comm, library, name, mode):
    data = random_graph(12, directed=UNDIRECTED)
    layer, call = case(library, name)
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    with default_float64():
        expected = run_whole(data, copy.deepcopy(layer), inputs, call, library=library)
        graph = dist_graph(data, comm)
        if library == "pyg":
            found = run_rows(with_rows(graph), layer, inputs, mode(call))
        else:
            found = run_ranks(graph, dnn.distribute(layer, graph), inputs, mode(call))
        same(found, expected)


def checkpointed_after_inference(call):
    """What a layer keeps from an evaluation in inference mode serves the training after it."""

    def run(*arguments):
        with torch.inference_mode():
            call(*arguments)
        return checkpoint(call, *arguments, use_reentrant=False)

    return run


@pytest.mark.mpi(2)
@pytest.mark.parametrize("library", LAYERS)
def test_layers_give_the_same_under_torchs_modes(comm, library):
    for name in LAYERS[library]:
        beside_whole(comm, library, name, checkpointed_after_inference)


@pytest.mark.mpi(1)
@pytest.mark.filterwarnings("ignore")  # of torch's compiler
def test_a_compiled_layer_gives_the_same(comm):
    """With plain tensors; rows: tests/rows/test_row_tensor.py."""
    torch._dynamo.reset()
    beside_whole(comm, "dgl", "gat", lambda call: torch.compile(call, backend="aot_eager"))
