"""What layers ask of the graph: that it is there, and that vertices have in-arcs where they need them."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn import nn as dnn


@pytest.mark.mpi(2)
def test_zero_in_degree_is_an_error_on_all_ranks_unless_allowed(comm):
    graph = dist_graph(random_graph(), comm)
    for layer in (dnn.GraphConv(8, 4), dnn.GATConv(8, 4, 2), dnn.GATv2Conv(8, 4, 2), dnn.GCN2Conv(8, 1)):
        rows = [graph.feats] * (2 if isinstance(layer, dnn.GCN2Conv) else 1)
        with pytest.raises(ValueError, match="without in-arcs"):
            layer.double()(graph, *rows)
    looped = dist_graph(random_graph(), comm, self_loops="add")
    assert dnn.GraphConv(8, 4).double()(looped, looped.feats).shape == (looped.num_owned, 4)


@pytest.mark.parametrize("layer", [dnn.PairNorm(), dnn.Dropout(0.5)], ids=["norm", "dropout"])
def test_a_layer_without_a_graph_says_so(layer):
    with pytest.raises(ValueError, match=r"this \w+ knows no graph: pass it, or call distgnn.nn.distribute"):
        layer(torch.ones(2, 2))
