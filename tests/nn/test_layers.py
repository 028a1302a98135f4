"""Our layers on P ranks equal DGL's on the whole graph; their parameters have DGL's names and move both ways."""

import pytest
import torch
from against_dgl import Inputs, num_arc_ids, run_ranks, run_whole, same
from cut_graphs import DIRECTED, UNDIRECTED, dist_graph, gather_rows, random_graph, whole_graph
from dgl_layers import (
    FREE,
    WIDTH,
    in_float64,
    plain,
    weighted,
    with_column_weights,
    with_edge_feats,
    with_initial,
    with_initial_weighted,
)
from dgl_layers import with_types_and_norm as typed

from distgnn import nn as dnn
from distgnn import ops
from distgnn.system.other_libraries import import_dgl


def with_wide_edge_feats(layer, graph, inputs):
    return layer(graph, inputs.feats, inputs.edge_feats @ torch.ones(5, WIDTH, dtype=torch.float64))


def typed_groups(layer, graph, inputs):
    """Ours with arcs grouped by relation, DGL's as it is; weights that are no parameters."""
    norm = inputs.edge_weight.detach()
    if isinstance(layer, dnn.RelGraphConv):
        return layer(graph, inputs.feats, ops.RelationArcs(graph, inputs.etypes, 3, norm))
    return layer(graph, inputs.feats, inputs.etypes, norm[:, None])


CASES = {  # name: class, arguments, call
    "sage mean": ("SAGEConv", (WIDTH, 4, "mean"), {}, plain),
    "sage mean wide": ("SAGEConv", (WIDTH, 8, "mean"), {}, plain),
    "sage mean weighted": ("SAGEConv", (WIDTH, 4, "mean"), {}, with_column_weights),
    "sage gcn": ("SAGEConv", (WIDTH, 4, "gcn"), {}, plain),
    "sage gcn wide": ("SAGEConv", (WIDTH, 8, "gcn"), {}, plain),
    "gcn both": ("GraphConv", (WIDTH, 4, "both"), FREE, plain),
    "gcn both weighted": ("GraphConv", (WIDTH, 4, "both"), FREE, weighted),
    "gcn right wide": ("GraphConv", (WIDTH, 8, "right"), FREE, plain),
    "gcn left": ("GraphConv", (WIDTH, 4, "left"), FREE, plain),
    "gcn none": ("GraphConv", (WIDTH, 4, "none"), FREE, plain),
    "gcn none wide": ("GraphConv", (WIDTH, 8, "none"), FREE, plain),
    "sage pool": ("SAGEConv", (WIDTH, 4, "pool"), {}, plain),
    "sage pool weighted": ("SAGEConv", (WIDTH, 4, "pool"), {}, with_column_weights),
    "gin sum": ("GINConv", ("linear", "sum", 0.3, True), {}, plain),
    "gin mean": ("GINConv", ("linear", "mean"), {"activation": torch.tanh}, plain),
    "gin max": ("GINConv", ("linear", "max"), {}, plain),
    "gin weighted": ("GINConv", ("linear", "sum"), {}, with_column_weights),
    "gat": ("GATConv", (WIDTH, 2, 4), FREE, plain),
    "gat residual": ("GATConv", (WIDTH, 2, 4), {"residual": True, "activation": torch.relu} | FREE, plain),
    "gat same width": ("GATConv", (WIDTH, WIDTH, 1), {"residual": True, "bias": False} | FREE, plain),
    "gat weighted": ("GATConv", (WIDTH, 2, 4), FREE, weighted),
    "gatv2": ("GATv2Conv", (WIDTH, 2, 4), {"residual": True} | FREE, plain),
    "gatv2 shared": ("GATv2Conv", (WIDTH, 2, 4), {"share_weights": True, "bias": False} | FREE, plain),
    "edge gat": ("EdgeGATConv", (WIDTH, 5, 2, 4), FREE, with_edge_feats),
    "edge gat bare": ("EdgeGATConv", (WIDTH, 5, 2, 4), {"residual": False, "bias": False} | FREE, with_edge_feats),
    "gine": ("GINEConv", ("linear", 0.3, True), {}, with_wide_edge_feats),
    "gcn2": ("GCN2Conv", (WIDTH, 2), FREE, with_initial),
    "gcn2 two weights": ("GCN2Conv", (WIDTH, 2, 0.3, 0.5, False), FREE, with_initial_weighted),
    "appnp": ("APPNPConv", (3, 0.1), {}, in_float64),
    "appnp weighted": ("APPNPConv", (3, 0.1), {}, weighted),
    "rgcn": ("RelGraphConv", (WIDTH, 4, 3), {}, typed),
    "rgcn groups": ("RelGraphConv", (WIDTH, 4, 3, "basis", 2), {}, typed_groups),
    "rgcn groups bdd": ("RelGraphConv", (WIDTH, 16, 3, "bdd", 8), {}, typed_groups),
    "rgcn basis": ("RelGraphConv", (WIDTH, 4, 3, "basis", 2), {"layer_norm": True}, typed),
    "rgcn bdd": ("RelGraphConv", (WIDTH, 16, 3, "bdd"), {"num_bases": 8, "self_loop": False, "bias": False}, typed),
}


def pair(name: str):
    """Our layer and DGL's with the same parameters, moved from DGL to us and back."""
    dgl_nn = import_dgl().nn
    kind, arguments, options, _ = CASES[name]
    torch.manual_seed(4)
    linear = {"linear": torch.nn.Linear(WIDTH, 4)}
    arguments = [linear.get(value, value) if isinstance(value, str) else value for value in arguments]
    ours, theirs = getattr(dnn, kind)(*arguments, **options), getattr(dgl_nn, kind)(*arguments, **options)
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    return ours.double(), theirs.double()


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", CASES)
def test_our_layer_equals_dgls(comm, name):
    data = random_graph(9, directed=[UNDIRECTED, DIRECTED][list(CASES).index(name) % 2])
    ours, theirs = pair(name)
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    call = CASES[name][3]
    expected = run_whole(data, theirs, inputs, call)
    same(run_ranks(dist_graph(data, comm, debug=True), ours, inputs, call), expected)


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


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", ["appnp", "appnp weighted", "gat", "gatv2"])
def test_dropped_arcs_do_not_depend_on_ranks(comm, name):
    data = random_graph(9)
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    kind, arguments, options, call = CASES[name]
    drop = {"edge_drop": 0.4} if kind == "APPNPConv" else {"attn_drop": 0.4, "feat_drop": 0.2}
    outs = []
    for graph in (dist_graph(data, comm), whole_graph(data)):
        torch.manual_seed(1)
        layer = getattr(dnn, kind)(*arguments, **options | drop).double()
        mine = inputs.rows(graph.owned_ids, graph.local.arc_ids)
        outs.append(torch.from_numpy(gather_rows(graph, call(layer, graph, mine).detach())))
    torch.testing.assert_close(*outs, rtol=1e-10, atol=1e-12)


def test_arguments_that_no_layer_has_are_refused():
    with pytest.raises(ValueError, match="unknown aggregator_type 'lstm': choose from mean, gcn, pool"):
        dnn.SAGEConv(3, 4, "lstm")
    with pytest.raises(ValueError, match="multiples of num_bases"):
        dnn.RelGraphConv(7, 4, 3, "bdd", 2)
    with pytest.raises(ValueError, match="needs num_bases"):
        dnn.TypedLinear(7, 4, 3, "basis")


@pytest.mark.mpi(2)
def test_zero_in_degree_is_an_error_on_all_ranks_unless_allowed(comm):
    graph = dist_graph(random_graph(), comm)
    for layer in (dnn.GraphConv(8, 4), dnn.GATConv(8, 4, 2), dnn.GATv2Conv(8, 4, 2), dnn.GCN2Conv(8, 1)):
        rows = [graph.feats] * (2 if isinstance(layer, dnn.GCN2Conv) else 1)
        with pytest.raises(ValueError, match="without in-arcs"):
            layer.double()(graph, *rows)
    looped = dist_graph(random_graph(), comm, self_loops="add")
    assert dnn.GraphConv(8, 4).double()(looped, looped.feats).shape == (looped.num_owned, 4)
