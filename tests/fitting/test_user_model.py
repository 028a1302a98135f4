"""A module's forward gets what its arguments are called; what is not known is said."""

import pytest
import torch
from cut_graphs import random_graph, whole_graph
from torch import nn

from distgnn.errors import InputError
from distgnn.fitting.user_model import adapt, arguments_of
from distgnn.graph.face.row_graph import with_rows


class Graph:
    edge_index, edge_weight, edge_attr = "arcs", "weights", None


def module(forward) -> nn.Module:
    return type("Model", (nn.Module,), {"forward": forward})()


@pytest.mark.parametrize(
    ("forward", "gets"),
    [
        (lambda self, graph, feats: (graph, feats), ("G", "F")),
        (lambda self, g, anything: (g, anything), ("G", "F")),
        (lambda self, blocks_of, graph: (blocks_of, graph), ("F", "G")),
        (lambda self, x, edge_index, edge_weight=None: (x, edge_index, edge_weight), ("F", "arcs", None)),
        (lambda self, x, edge_index, edge_weight: (x, edge_index, edge_weight), ("F", "arcs", "weights")),
        (lambda self, z, adj_t: (z, adj_t), ("F", "arcs")),
        (lambda self, x, edge_index=None, edge_weight=None: (x, edge_index, edge_weight), ("F", "arcs", None)),
        (lambda self, data: data, "G"),
        (lambda self, rows: rows, "F"),
        (lambda self, *every: every, ("G", "F")),
    ],
)
def test_forward_gets_what_it_asks_for(forward, gets):
    graph, model = Graph(), adapt(module(forward))
    found = model(graph, "F")
    names = {id(graph): "G"}
    shown = tuple(names.get(id(one), one) for one in found) if isinstance(found, tuple) else names.get(id(found), found)
    assert shown == gets


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # inside torch.compile
@pytest.mark.parametrize("wrap", [torch.compile, nn.DataParallel])
def test_a_wrapper_gets_what_its_module_asks_for(wrap):
    graph = Graph()
    assert adapt(wrap(module(lambda self, x, edge_index: (x, edge_index))))(graph, "F") == ("F", "arcs")


def test_a_column_that_the_graph_has_not_is_said():
    with pytest.raises(InputError, match="forward takes edge_attr, and the graph has none"):
        adapt(module(lambda self, x, edge_index, edge_attr: x))(Graph(), "F")
    with pytest.raises(InputError, match="and mystery is nothing that fit can give"):
        arguments_of(module(lambda self, x, edge_index, mystery: x))
    with pytest.raises(InputError, match=r"takes \(x, ei\), and ei is nothing that fit can give"):
        arguments_of(module(lambda self, x, ei: x))


def test_a_layer_of_pyg_is_a_model():
    conv = pytest.importorskip("torch_geometric.nn").GCNConv(8, 4).double()
    graph = with_rows(whole_graph(random_graph()))
    expected = conv(graph.x, graph.edge_index).whole()
    assert torch.equal(adapt(conv)(graph, graph.x).whole(), expected)
