"""Unmodified modules and scripts of DGL with rows of all ranks, on P ranks, equal plain DGL."""

import warnings

import numpy as np
import pytest
import torch
from against_dgl import Inputs, num_arc_ids, run_rows, run_whole, same
from cut_graphs import DIRECTED, UNDIRECTED, dist_graph, random_graph
from dgl_layers import cases
from torch import nn
from torch.nn import functional as F

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


def make(name: str):
    torch.manual_seed(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name][0]().double()


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", ROWS)
def test_module_runs_unchanged(comm, name):
    data = random_graph(12, directed=DIRECTED)
    model, call = make(name), CASES[name][1]
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    expected = run_whole(data, model, inputs, call)
    same(run_rows(with_rows(dist_graph(data, comm, debug=True)), model, inputs, call), expected)


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


# --- scripts: a model and a loop of one's own; others: tests/interop/test_peers.py ------------------------------------


class Embedding(nn.Module):
    """A table of vertices by id in place of features."""

    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(60, 5), dgl.nn.GraphConv(5, 4, allow_zero_in_degree=True)

    def forward(self, graph, feats):
        return self.layer(graph, self.table(torch.arange(graph.num_nodes())))


class OwnMessages(nn.Module):
    """Functions of edges and nodes, and columns that are set inside a scope."""

    def __init__(self):
        super().__init__()
        self.score, self.read = nn.Linear(16, 1), nn.Linear(8, 4)

    def forward(self, graph, feats):
        with graph.local_scope():
            graph.ndata["h"] = feats
            graph.apply_edges(lambda edges: {"s": self.score(torch.cat([edges.src["h"], edges.dst["h"]], 1))})
            graph.edata["a"] = dgl.ops.edge_softmax(graph, graph.edata.pop("s"))
            graph.update_all(dgl.function.u_mul_e("h", "a", "m"), dgl.function.sum("m", "h"))
            graph.apply_nodes(lambda nodes: {"h": nodes.data["h"] - dgl.mean_nodes(graph, "h")})
            return self.read(graph.ndata["h"])


SCRIPTS = {"embedding": Embedding, "own messages": OwnMessages}


def classes(graph, out, columns):
    """A loss of vertices by mask."""
    mask = graph.ndata["train_mask"] if "train_mask" in graph.ndata else columns["mask"]
    labels = graph.ndata["y"]
    return F.cross_entropy(out[mask], labels[mask])


def links(graph, out, columns):
    """A dot product for pairs of ids."""
    pairs, truth = columns["pairs"], columns["truth"]
    return F.binary_cross_entropy_with_logits((out[pairs[0]] * out[pairs[1]]).sum(-1), truth)


def losses_of(make, graph, loss, columns):
    """Losses of three steps, gradients of the last, and the output afterwards."""
    torch.manual_seed(3)
    model = make().double()
    graph.ndata["y"], graph.ndata["train_mask"] = columns["labels"], columns["mask"]
    graph.ndata["h"] = columns["feats"]
    optimizer, found = torch.optim.Adam(model.parameters(), lr=0.02), []
    for _ in range(3):
        optimizer.zero_grad()
        value = loss(graph, model(graph, graph.ndata["h"]), columns)
        value.backward()
        optimizer.step()
        found.append(value.item())
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    out = model(graph, graph.ndata["h"])
    return torch.tensor(found), gradients, torch.from_numpy(out.detach().numpy())


@pytest.mark.mpi(1, 3)
def test_a_script_runs_unchanged(comm):
    """All in one job of ranks: starting one takes longer than a script."""
    data = random_graph(12, directed=UNDIRECTED)
    torch.manual_seed(0)
    columns = {
        "feats": torch.from_numpy(data.feats).double(),
        "labels": torch.randint(0, 4, (60,)),
        "mask": torch.rand(60) < 0.5,
        "pairs": torch.randint(0, 60, (2, 41)),
        "truth": torch.randint(0, 2, (41,)).double(),
    }
    graph, whole = with_rows(dist_graph(data, comm, debug=True)), data.to_dgl()
    for name, make in SCRIPTS.items():
        for loss in (classes, links):
            expected, found = losses_of(make, whole, loss, columns), losses_of(make, graph, loss, columns)
            for one, other in zip(found, expected, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9, msg=lambda text: f"{name}: {text}")  # noqa: B023


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
    other.ndata["z"] = feats
    assert "z" in other.ndata and "z" not in graph.ndata
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
