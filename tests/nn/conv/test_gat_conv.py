"""GATConv, GATv2Conv and EdgeGATConv equal DGL's, and give their attention."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph
from dgl_layers import FREE, WIDTH, plain, weighted, with_edge_feats
from our_layers import same_as_dgls

from distgnn import nn as dnn
from distgnn import ops

CASES = {  # name: class, arguments, options, call
    "gat": ("GATConv", (WIDTH, 2, 4), FREE, plain),
    "gat residual": ("GATConv", (WIDTH, 2, 4), {"residual": True, "activation": torch.relu} | FREE, plain),
    "gat same width": ("GATConv", (WIDTH, WIDTH, 1), {"residual": True, "bias": False} | FREE, plain),
    "gat weighted": ("GATConv", (WIDTH, 2, 4), FREE, weighted),
    "gatv2": ("GATv2Conv", (WIDTH, 2, 4), {"residual": True} | FREE, plain),
    "gatv2 shared": ("GATv2Conv", (WIDTH, 2, 4), {"share_weights": True, "bias": False} | FREE, plain),
    "edge gat": ("EdgeGATConv", (WIDTH, 5, 2, 4), FREE, with_edge_feats),
    "edge gat bare": ("EdgeGATConv", (WIDTH, 5, 2, 4), {"residual": False, "bias": False} | FREE, with_edge_feats),
}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", CASES)
def test_our_layer_equals_dgls(comm, name):
    same_as_dgls(comm, CASES, name)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
def test_attention_of_arcs_is_given(comm, kind):
    data = random_graph(9)
    torch.manual_seed(1)
    layer = getattr(dnn, kind)(WIDTH, 2, 4, **FREE).double()
    graph = dist_graph(data, comm)
    out, attention = layer(graph, graph.feats, get_attention=True)
    assert out.shape == (graph.num_owned, 4, 2)
    assert attention.shape == (graph.num_edges(), 4, 1)
    sums = ops.from_arcs(graph, attention)[:, :, 0]
    torch.testing.assert_close(sums, (graph.in_degrees() > 0).double()[:, None].expand_as(sums))
