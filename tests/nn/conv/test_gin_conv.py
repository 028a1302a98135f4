"""GINConv and GINEConv equal DGL's."""

import pytest
import torch
from dgl_layers import WIDTH, plain, with_column_weights
from our_layers import same_as_dgls


def with_wide_edge_feats(layer, graph, inputs):
    return layer(graph, inputs.feats, inputs.edge_feats @ torch.ones(5, WIDTH, dtype=torch.float64))


CASES = {  # name: class, arguments, options, call
    "gin sum": ("GINConv", ("linear", "sum", 0.3, True), {}, plain),
    "gin mean": ("GINConv", ("linear", "mean"), {"activation": torch.tanh}, plain),
    "gin max": ("GINConv", ("linear", "max"), {}, plain),
    "gin weighted": ("GINConv", ("linear", "sum"), {}, with_column_weights),
    "gine": ("GINEConv", ("linear", 0.3, True), {}, with_wide_edge_feats),
}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", CASES)
def test_our_layer_equals_dgls(comm, name):
    same_as_dgls(comm, CASES, name)
