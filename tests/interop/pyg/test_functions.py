"""Unmodified layers and models of PyG on P ranks equal the same on the whole graph: output and every gradient."""

import warnings

import pytest
from against_dgl import made, same_layer
from cut_graphs import DIRECTED, UNDIRECTED, dist_graph, random_graph, without_part_1
from pyg_layers import cases

from distgnn.comm.ending.leaving import watched
from distgnn.graph.face.row_graph import with_rows

pytest.importorskip("torch_geometric")
CASES = cases()


def check(comm, name, cut=None, directed=UNDIRECTED):
    (make, call), data = CASES[name], random_graph(12, directed=directed)
    cut = cut and cut(data.edge_list(), comm.size)
    return same_layer(comm, data, made(make), call, "pyg", cut).plain


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", CASES)
def test_layer_runs_unchanged(comm, name):
    check(comm, name, directed=[UNDIRECTED, DIRECTED][list(CASES).index(name) % 2])


@pytest.mark.mpi(2)
@pytest.mark.parametrize(
    "name",
    ["GCNConv", "SAGEConv three aggregators", "GATConv", "GATConv edge features", "TransformerConv", "RGCNConv", "GAT"],
)
def test_a_rank_without_vertices_and_arcs_takes_part(comm, name):
    graph = check(comm, name, without_part_1)
    assert comm.rank != 1 or graph.num_nodes() == graph.num_edges() == 0


@pytest.mark.mpi(2)
def test_code_that_pyg_writes_is_in_another_file_on_each_rank(comm):
    """A number of rows of all ranks that this code asks for is asked for in one place all the same."""
    graph = with_rows(dist_graph(random_graph(), watched(comm)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.nn import ChebConv

        layer = ChebConv(graph.x.shape[1], 3, 2).to(graph.x.dtype)
    assert layer(graph.x, graph.edge_index).shape == (graph.x.shape[0], 3)
