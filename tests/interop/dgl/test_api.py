"""Unmodified modules of DGL on rows of P ranks equal plain DGL. Scripts: tests/interop/test_peers.py."""

import numpy as np
import pytest
import torch
from against_dgl import made, same_layer
from cut_graphs import DIRECTED, UNDIRECTED, dist_graph, random_graph
from dgl_layers import cases

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows
from distgnn.system.other_libraries import import_dgl

dgl = import_dgl()
CASES = cases()
# One of each kind of message and of each function on rows; all layers: tests/nn/test_distribute.py.
ROWS = [
    *("sage mean weighted", "sage gcn", "sage pool", "gin max", "gine", "sg weighted", "tag", "appnp weighted"),
    *("gcn2 weighted", "jumping knowledge", "cheb", "edge weight norm both", "gat", "gat weighted", "gatv2", "dot gat"),
    *("edge gat", "agnn", "rgcn", "rgcn bdd", "gcn both weighted", "gcn left", "gcn right weighted"),
    "sage pool weighted",
]


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", ROWS)
def test_module_runs_unchanged(comm, name):
    make, call = CASES[name]
    same_layer(comm, random_graph(12, directed=DIRECTED), made(make), call)


@pytest.mark.mpi(1, 3)
def test_an_ordinary_weight_of_each_arc_is_in_the_source_s_order(comm):
    """Also on a graph that DGL has turned around, whose columns are DGL's own."""
    data = random_graph(12, directed=DIRECTED)
    face, plain = with_rows(dist_graph(data, comm)), data.to_dgl()
    weight = torch.linspace(0.1, 1, plain.num_edges(), dtype=torch.float64)
    norm, conv = dgl.nn.EdgeWeightNorm("both"), dgl.nn.GraphConv(8, 4, allow_zero_in_degree=True).double()
    expected = conv(plain, plain.ndata["feat"].double(), edge_weight=norm(plain, weight))
    found = conv(face, face.ndata["feat"], edge_weight=norm(face, weight))
    torch.testing.assert_close(found.whole(), expected)


@pytest.mark.mpi(1, 2)
def test_what_needs_a_whole_graph_is_refused_by_name_and_readouts_are_exact(comm):
    data = random_graph(12, directed=UNDIRECTED)
    graph, whole = with_rows(dist_graph(data, comm)), data.to_dgl()
    feats = torch.from_numpy(data.feats).double()
    graph.ndata["h"], whole.ndata["h"] = feats, feats
    for name in ("sum_nodes", "mean_nodes", "max_nodes", "softmax_nodes"):
        found = torch.from_numpy(getattr(dgl, name)(graph, "h").numpy())
        torch.testing.assert_close(found, getattr(dgl, name)(whole, "h"))
    for reduce in ("sum", "mean", "max", "min"):
        found = getattr(dgl.ops, f"copy_u_{reduce}")(graph, graph.ndata["h"]).whole()
        torch.testing.assert_close(found, getattr(dgl.ops, f"copy_u_{reduce}")(whole, feats))
    other = graph.local_var()
    other.apply_nodes(lambda nodes: {"z": nodes.data["h"] - dgl.mean_nodes(other, "h")})
    torch.testing.assert_close(other.ndata["z"].whole(), feats - feats.mean(0))
    assert "z" not in graph.ndata
    calls = {
        "add_self_loop": "--self-loops add, and leave this line out",
        "remove_self_loop": "--self-loops remove, or add where each gets one next: leave this line out",
        "to_bidirected": "--direction both",
        "to_simple": "before it is cut",
        "khop_graph": "before it is cut",
        "topk_nodes": "before it is cut",
    }
    for name, advice in calls.items():
        with pytest.raises(InputError, match=f"dgl.{name} needs a whole graph, .*{advice}"):
            getattr(dgl, name)(graph, "h") if name == "topk_nodes" else getattr(dgl, name)(graph)
    with pytest.raises(InputError, match=r"dgl.sample_neighbors needs a whole graph"):
        dgl.sampling.sample_neighbors(graph, [0], 2)
    without = with_rows(dist_graph(GraphData.from_arrays(np.array([[0, 1], [2, 1]]), num_nodes=4), comm))
    assert dgl.remove_self_loop(without).num_edges() == without.num_edges()  # cut as the line says
