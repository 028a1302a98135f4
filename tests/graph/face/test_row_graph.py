"""Arcs of a graph on ranks are in the order of the source, so that an ordinary tensor of numbers of arcs fits."""

import pytest
import torch
from cut_graphs import dist_graph
from pyg_arcs import ORDERS, D, scene

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows
from distgnn.rows import rows_of

nn = pytest.importorskip("torch_geometric.nn")
transforms = pytest.importorskip("torch_geometric.transforms")
utils = pytest.importorskip("torch_geometric.utils")


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("order", ORDERS)
def test_places_of_arcs_are_those_of_the_source(comm, order):
    data, graph = scene(comm, order)
    assert torch.equal(GraphData.from_pyg(data, directed=False).to_pyg().edge_index, data.edge_index)
    numbers = torch.arange(data.num_edges, dtype=torch.float64)
    graph.edata["number"] = numbers
    assert torch.equal(graph.edata["number"].whole(), numbers)
    for row, role in enumerate(("source", "target")):
        ends = rows_of(graph.edge_index[row].arcs.ids(role), graph.arc_space)
        assert torch.equal(ends.whole(), data.edge_index[row])


@pytest.mark.mpi(3)
def test_another_order_is_refused_and_what_the_line_says_works(comm):
    data, graph = scene(comm, "mixed")
    with pytest.raises(InputError, match="whose order in the source is not known: sort them"):
        nn.GCNConv(D, 4).double()(graph.x, graph.edge_index, torch.rand(data.num_edges, dtype=torch.float64))
    assert GraphData.from_pyg(data.coalesce(), directed=False).arc_order == "sorted"


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("directed", [True, False])
def test_coalesced_arcs_are_in_the_order_that_pyg_gives_them(comm, directed):
    data, _ = scene(comm, "mixed")
    data.x, data.edge_index = data.x.float().double(), torch.unique(data.edge_index, dim=1).flip(1).roll(7, 1)
    numbers = torch.arange(data.num_edges, dtype=torch.float64)
    graph = with_rows(dist_graph(GraphData.from_pyg(data, directed=directed), comm))
    conv = nn.GraphConv(D, 4).double()
    conv(graph.x, graph.edge_index)  # what the graph keeps of its own order
    ours, theirs = graph.coalesce(), data.coalesce()
    assert (graph.is_coalesced(), ours.is_coalesced()) == (data.is_coalesced(), True)
    for change in (utils.coalesce, utils.sort_edge_index, utils.to_undirected, transforms.ToUndirected()):
        if directed and "ndirected" in str(change):
            continue
        found = change(graph if isinstance(change, transforms.BaseTransform) else graph.edge_index)
        found = getattr(found, "edge_index", found)
        torch.testing.assert_close(conv(graph.x, found, numbers).whole(), conv(theirs.x, theirs.edge_index, numbers))
    expected = conv(theirs.x, theirs.edge_index, numbers)
    torch.testing.assert_close(conv(ours.x, ours.edge_index, numbers).whole(), expected)
    ours.edata["number"] = numbers
    ours.y = graph.y.clamp(max=1)
    assert ours.num_classes == 2 and graph.num_classes == 3
    assert torch.equal(ours.edata["number"].whole(), numbers) and "number" not in graph.edata
