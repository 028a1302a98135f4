"""Layers on P ranks equal DGL's on the whole graph: output and every gradient; parameters move both ways."""

import numpy as np
import pytest
import torch
from cut_graphs import DIRECTED, UNDIRECTED, dist_graph, gather_rows, random_graph

from distgnn import nn as dnn
from distgnn.comm import sum_over_ranks
from distgnn.interop.dgl.import_dgl import import_dgl

TOLERANCE = {"rtol": 1e-9, "atol": 1e-10}  # float64 sums in another order, through two products


@pytest.fixture(scope="module")
def dgl():
    return import_dgl()


def pairs(dgl):
    """name -> (our layer, DGL's layer), both 7 features to 4."""
    from dgl.nn import GraphConv, SAGEConv

    made = {
        "sage mean": (dnn.SAGEConv(7, 4, "mean"), SAGEConv(7, 4, "mean")),
        "sage mean wide": (dnn.SAGEConv(7, 9, "mean"), SAGEConv(7, 9, "mean")),
        "sage gcn": (dnn.SAGEConv(7, 4, "gcn"), SAGEConv(7, 4, "gcn")),
        "sage gcn wide": (dnn.SAGEConv(7, 9, "gcn"), SAGEConv(7, 9, "gcn")),
    }
    for norm in ("both", "right", "left", "none"):
        made[f"gcn {norm}"] = (
            dnn.GraphConv(7, 4, norm, allow_zero_in_degree=True),
            GraphConv(7, 4, norm, allow_zero_in_degree=True),
        )
        made[f"gcn {norm} wide"] = (
            dnn.GraphConv(7, 9, norm, allow_zero_in_degree=True),
            GraphConv(7, 9, norm, allow_zero_in_degree=True),
        )
    return made


NAMES = ["sage mean", "sage mean wide", "sage gcn", "sage gcn wide"]
NAMES += [f"gcn {norm}{wide}" for norm in ("both", "right", "left", "none") for wide in ("", " wide")]


def run_dgl(data, layer, x, out_weight, edge_weight=None):
    """Output and gradients of DGL on the whole graph: parameters by name, then the rows."""
    whole = data.to_dgl(data.edge_list())
    rows = torch.from_numpy(x).requires_grad_()
    weight = None if edge_weight is None else torch.from_numpy(edge_weight)
    out = layer(whole, rows, edge_weight=weight)
    (out * torch.from_numpy(out_weight[:, : out.shape[1]])).sum().backward()
    return out.detach().numpy(), {name: p.grad.numpy() for name, p in layer.named_parameters()}, rows.grad.numpy()


def run_ranks(graph, layer, x, out_weight, edge_weight=None):
    """The same from all ranks, gathered."""
    rows = torch.from_numpy(x[graph.owned_ids]).requires_grad_()
    weight = None if edge_weight is None else torch.from_numpy(edge_weight[graph.local.arc_ids])
    out = layer(graph, rows, edge_weight=weight)
    (out * torch.from_numpy(out_weight[graph.owned_ids][:, : out.shape[1]])).sum().backward()
    grads = {name: sum_over_ranks(graph.comm, p.grad.numpy()) for name, p in layer.named_parameters()}
    return gather_rows(graph, out.detach()), grads, gather_rows(graph, rows.grad)


def same(left, right) -> None:
    np.testing.assert_allclose(left[0], right[0], **TOLERANCE)
    np.testing.assert_allclose(left[2], right[2], **TOLERANCE)
    assert left[1].keys() == right[1].keys()
    for name, grad in left[1].items():
        np.testing.assert_allclose(grad, right[1][name], err_msg=name, **TOLERANCE)


def numbers(data):
    random = np.random.default_rng(11)
    return random.standard_normal((data.num_nodes, 7)), random.standard_normal((data.num_nodes, 9))


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("name", NAMES)
def test_our_layer_equals_dgls(comm, dgl, name):
    torch.manual_seed(4)
    data = random_graph(9, directed=DIRECTED)
    ours, theirs = (layer.double() for layer in pairs(dgl)[name])
    ours.load_state_dict(theirs.state_dict())
    x, out_weight = numbers(data)
    same(run_ranks(dist_graph(data, comm), ours, x, out_weight), run_dgl(data, theirs, x, out_weight))


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("name", ["sage mean", "gcn both"])
def test_with_edge_weights(comm, dgl, name):
    torch.manual_seed(4)
    data = random_graph(10, directed=DIRECTED)
    ours, theirs = (layer.double() for layer in pairs(dgl)[name])
    theirs.load_state_dict(ours.state_dict())
    x, out_weight = numbers(data)
    weight = np.random.default_rng(0).random(data.edge_list().num_arcs)
    same(run_ranks(dist_graph(data, comm), ours, x, out_weight, weight), run_dgl(data, theirs, x, out_weight, weight))


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("name", NAMES)
def test_unmodified_dgl_layer_runs_on_ranks(comm, dgl, name):
    torch.manual_seed(4)
    data = random_graph(12, directed=UNDIRECTED)
    layer = pairs(dgl)[name][1].double()
    x, out_weight = numbers(data)
    expected = run_dgl(data, layer, x, out_weight)
    layer.zero_grad()
    same(run_ranks(dist_graph(data, comm), layer, x, out_weight), expected)


@pytest.mark.mpi(2)
def test_what_cannot_run_is_refused_with_the_alternative(comm, dgl):
    graph = dist_graph(random_graph(), comm)
    graph.ndata["h"] = graph.feats
    copied = dgl.function.copy_u("h", "m")
    with pytest.raises(ValueError, match=r"cannot run distributed, .* reduce with the built-in functions"):
        graph.update_all(copied, lambda nodes: {"o": nodes.mailbox["m"].sum(1)})
    with pytest.raises(ValueError, match="give both one name"):
        graph.update_all(copied, dgl.function.sum("other", "o"))
    with pytest.raises(ValueError, match="must treat each edge by itself"):
        graph.update_all(lambda edges: {"m": edges.src["h"].mean(0)}, dgl.function.sum("m", "o"))
    with pytest.raises(ValueError, match="no 'edges' on several ranks"):
        graph.apply_edges(lambda edges: {"m": edges.edges()})
    with pytest.raises(ValueError, match="leave edges out"):
        graph.apply_edges(dgl.function.copy_u("h", "m"), edges=[0])


@pytest.mark.mpi(1, 2)
def test_zero_in_degree_is_an_error_on_all_ranks_unless_allowed(comm, dgl):
    graph = dist_graph(random_graph(), comm)
    with pytest.raises(ValueError, match="without in-arcs"):
        dnn.GraphConv(7, 4).double()(graph, graph.feats)
    looped = dist_graph(random_graph(), comm, self_loops="add")
    assert dnn.GraphConv(7, 4).double()(looped, looped.feats).shape == (looped.num_owned, 4)
