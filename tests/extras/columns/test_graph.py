"""Ranks that share a part and split its columns compute what DGL computes on the whole graph."""

import numpy as np
import pytest
import torch
from against_dgl import Inputs, num_arc_ids, run_ranks, run_whole, same
from cut_graphs import DIRECTED, UNDIRECTED, dense_adjacency, dist_graph, gather_rows, random_graph, whole_graph

from distgnn import nn as dnn
from distgnn import ops
from distgnn.config import TrainConfig
from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.extras.columns.graph import row_share
from distgnn.system.other_libraries import import_dgl
from distgnn.train import Trainer
from distgnn.train.checkpoint.fingerprint import fingerprint

COLUMNS = (2, 4)


def layers(dgl):
    """Pairs of our layer and DGL's, of 7 features: 4 and 9 columns out, which no number of ranks divides."""
    from dgl.nn import GraphConv, SAGEConv

    torch.manual_seed(4)
    loose = {"allow_zero_in_degree": True}
    return [
        (dnn.SAGEConv(7, 4, "mean"), SAGEConv(7, 4, "mean")),
        (dnn.SAGEConv(7, 8, "mean"), SAGEConv(7, 8, "mean")),
        (dnn.SAGEConv(7, 8, "gcn"), SAGEConv(7, 8, "gcn")),
        (dnn.GraphConv(7, 4, "both", **loose), GraphConv(7, 4, "both", **loose)),
        (dnn.GraphConv(7, 8, "both", **loose), GraphConv(7, 8, "both", **loose)),
    ]


@pytest.mark.mpi(4)
@pytest.mark.parametrize("directed", [DIRECTED, UNDIRECTED])
def test_layers_equal_dgls(comm, directed):
    dgl = import_dgl()
    for columns in COLUMNS:
        data = random_graph(9, directed=directed, num_feats=7)
        inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()), 7)
        for ours, theirs in layers(dgl):
            ours, theirs = ours.double(), theirs.double()
            ours.load_state_dict(theirs.state_dict())
            call = lambda layer, graph, given: layer(graph, given.feats)  # noqa: E731
            expected = run_whole(data, theirs, inputs, call)
            graph = dist_graph(data, comm, split_columns=columns)
            same(run_ranks(graph, ours, inputs, call), expected)
            same(run_ranks(graph, theirs, inputs, call), expected)  # DGL's own layer, as it is


@pytest.mark.mpi(4)
@pytest.mark.parametrize("directed", [DIRECTED, UNDIRECTED])
def test_edge_weights_and_their_gradients_equal_dgls(comm, directed):
    dgl = import_dgl()
    data = random_graph(10, directed=directed, num_feats=7)
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()), 7)
    for ours, theirs in layers(dgl)[1:4:2]:
        ours, theirs = ours.double(), theirs.double()
        ours.load_state_dict(theirs.state_dict())
        call = lambda layer, graph, given: layer(graph, given.feats, edge_weight=given.edge_weight)  # noqa: E731
        expected = run_whole(data, theirs, inputs, call)
        same(run_ranks(dist_graph(data, comm, split_columns=2), ours, inputs, call), expected)


@pytest.mark.mpi(4)
@pytest.mark.parametrize("width", [1, 3, 16])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_sums_are_those_of_as_many_parts_to_the_bit(comm, dtype, width):
    data = random_graph(5, num_feats=width)
    pairs = comm.Split(comm.rank % 2, comm.rank)
    shared, plain = dist_graph(data, comm, split_columns=2, dtype=dtype), dist_graph(data, pairs, dtype=dtype)
    for graph in (shared, plain):
        rows = graph.feats.clone().requires_grad_()
        out = ops.spmm(graph, rows, target_scale=graph.degree_scale("in", -1))
        out.float().square().sum().backward()
        graph.found = [gather_rows(graph, found.detach().float()) for found in (out, rows.grad)]
    for here, there in zip(shared.found, plain.found, strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.mpi(4)
def test_what_travels_is_the_halos_of_the_parts_and_two_all_to_alls(comm):
    data = random_graph(7)
    graph = dist_graph(data, comm, split_columns=2)
    before = graph.transport.counters.sent_bytes
    ops.spmm(graph, graph.feats.clone().requires_grad_())
    plan, own = graph.part.plan, graph.num_owned
    halos = len(plan.broadcast_rows) + plan.num_target_halos
    others = graph.part.num_owned - own
    assert graph.transport.counters.sent_bytes - before == 8 * 4 * (halos + own + others)


@pytest.mark.mpi(4)
def test_more_ranks_than_rows(comm):
    edges = np.array([[0, 1], [1, 2], [2, 0], [2, 0]])
    feats, nobody = np.arange(9, dtype=np.float32).reshape(3, 3), np.zeros(0, np.int64)
    data = GraphData.from_arrays(
        edges, num_nodes=3, feats=feats, labels=np.zeros(3, np.int64), train=np.arange(3), valid=nobody, test=nobody
    )
    graph = dist_graph(data, comm, split_columns=4)
    expected = dense_adjacency(data) @ data.feats
    np.testing.assert_allclose(gather_rows(graph, ops.spmm(graph, graph.feats)), expected, rtol=1e-12)


@pytest.mark.mpi(4)
def test_is_the_same_graph_to_a_checkpoint(comm):
    data = random_graph(4, weighted=True, typed=True)
    assert fingerprint(dist_graph(data, comm, split_columns=2)) == fingerprint(whole_graph(data))


@pytest.mark.mpi(2)
def test_what_needs_whole_rows_is_refused(comm):
    graph = dist_graph(random_graph(), comm, split_columns=2, self_loops="add")
    for use in (
        lambda: dnn.GATConv(8, 4, 2).double()(graph, graph.feats),
        lambda: dnn.SAGEConv(8, 4, "pool").double()(graph, graph.feats),
        lambda: ops.halo_broadcast(graph, graph.feats),
        lambda: graph.local_arcs,
    ):
        with pytest.raises(InputError, match="load the graph without split_columns"):
            use()
    with pytest.raises(InputError, match="inductive training is for one rank a part"):
        Trainer(dnn.SAGEConv(8, 4), graph, TrainConfig(inductive=True))


def test_shares_are_the_part():
    data = random_graph(2, typed=True)
    part = whole_graph(data).local
    shares = [row_share(part, 3, column) for column in range(3)]
    assert [share.num_owned for share in shares] == [20, 20, 20]
    for name in ("feats", "labels", "train_mask", "global_ids", "in_degrees", "node_types"):
        together = np.concatenate([getattr(share, name) for share in shares])
        np.testing.assert_array_equal(together, getattr(part, name)[: part.num_owned])


@pytest.mark.mpi(4)
def test_arcs_are_dropped_as_on_one_rank(comm):
    data = random_graph(3)
    found = []
    for graph in (dist_graph(data, comm, split_columns=2), whole_graph(data)):
        rows = graph.feats.clone().requires_grad_()
        out = dnn.APPNPConv(2, 0.1, edge_drop=0.5).double()(graph, rows)
        out.square().sum().backward()
        found.append([gather_rows(graph, one.detach()) for one in (out, rows.grad)])
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-9, atol=1e-10)
