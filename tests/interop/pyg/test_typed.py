"""Layers and models of PyG on the types and relations of P ranks equal plain PyG on the whole HeteroData.

Outputs by type, gradients of parameters, and the losses of some steps.
"""

import warnings

import pytest
import torch
from against_dgl import default_float64
from typed_parts import random_typed, same_steps, typed_graph

from distgnn import nn as dnn
from distgnn.errors import InputError

pytest.importorskip("torch_geometric")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pyg_typed import CASES, CITES, graph_for, pyg
    from torch_geometric.nn import SAGEConv

WRITES = ("author", "writes", "paper")


@pytest.mark.mpi(3)
@default_float64()
def test_every_layer_gives_what_plain_pyg_gives(comm):
    for number, name in enumerate(CASES):
        whole = graph_for(name, random_typed, number)
        same_steps(name, CASES[name], whole, whole.to_pyg, comm)


@pytest.mark.mpi(2)
@default_float64()
def test_columns_by_type_have_the_manners_of_heterodata(comm):
    whole = random_typed()
    data, graph = whole.to_pyg(), typed_graph(whole, comm)
    assert graph.metadata() == data.metadata() and graph.num_nodes_dict == data.num_nodes_dict
    assert (graph.rank, graph.num_ranks) == (comm.rank, comm.size)
    assert graph.num_edges == data.num_edges and graph.num_features == data.num_features
    for name in ("x", "y", "train_mask", "edge_attr", "edge_weight"):
        ours, theirs = graph.collect(name), data.collect(name)
        assert ours.keys() == theirs.keys() and all(torch.equal(ours[key].whole(), theirs[key]) for key in theirs)
    paper = graph["paper"]
    paper.score = paper.x.mean(1) + torch.arange(23.0)
    graph.x_dict = {name: rows * 2 for name, rows in graph.x_dict.items()}
    assert torch.equal(paper.score.whole(), data["paper"].x.mean(1) + torch.arange(23.0))
    assert torch.equal(graph["author"].x.whole(), data["author"].x * 2)
    graph["cites"].kind = torch.arange(50)
    assert torch.equal(graph[CITES].kind.whole(), torch.arange(50)) and graph["author", "paper"] is graph[WRITES]
    torch.testing.assert_close(
        float(paper.x[paper.train_mask].std()), float(2 * data["paper"].x[data["paper"].train_mask].std())
    )
    torch.manual_seed(1)
    dropped = torch.nn.functional.dropout(paper.x, 0.5).whole()
    torch.manual_seed(1)
    alone = torch.nn.functional.dropout(typed_graph(whole, comm, seed=5)["paper"].x * 2, 0.5).whole()
    assert torch.equal(dropped, alone)  # drawn by type and id, wherever rows are
    torch.manual_seed(1)
    table = dnn.NodeEmbedding(graph["venue"], 4)
    torch.manual_seed(1)
    assert torch.equal(table.weight.whole(), torch.nn.Embedding(17, 4).weight)


@pytest.mark.mpi(2)
@default_float64()
def test_relations_from_one_type_share_one_exchange(comm):
    graph, sent = typed_graph(random_typed(same_width=True), comm), {}
    counters = graph.plain.transport.counters
    for aggr in ("sum", "mean"):  # a mean goes relation by relation
        layer = pyg.HeteroConv({key: SAGEConv(6, 6) for key in graph.edge_types}, aggr)
        out = layer({kind: rows * 1 for kind, rows in graph.x_dict.items()}, graph.edge_index_dict)
        before = counters.copy()
        out = layer(
            {kind: rows.clone() for kind, rows in out.items()} | {"venue": graph["venue"].x}, graph.edge_index_dict
        )
        sum(rows.sum() for rows in out.values()).backward()
        found = counters.since(before)
        sent[aggr] = [comm.allreduce(found[name]) for name in ("sent_messages", "sent_bytes")]
    assert sent["sum"][0] <= 0.7 * sent["mean"][0] and sent["sum"][1] < sent["mean"][1], sent


@pytest.mark.mpi(2)
@default_float64()
def test_hooks_on_all_modules_see_every_layer_of_a_sum(comm):
    graph, seen = typed_graph(random_typed(same_width=True), comm), []
    layer = pyg.HeteroConv({key: SAGEConv(6, 6) for key in graph.edge_types}, "sum")
    with torch.nn.modules.module.register_module_forward_hook(lambda module, _inputs, _output: seen.append(module)):
        layer(graph.x_dict, graph.edge_index_dict)
    assert set(layer.convs.values()) <= set(seen)


@pytest.mark.mpi(2)
@default_float64()
def test_what_would_mix_types_is_refused_in_one_line(comm):
    graph = typed_graph(random_typed(), comm)
    x, writes = graph.x_dict, graph[WRITES].edge_index
    near = graph["near"].edge_index  # of as many venues as authors
    refused = {
        "rows of two types do not go together": lambda: x["author"].sum(1) + x["venue"].sum(1),
        "rows of two types": lambda: SAGEConv((7, 3), 4)((x["author"], x["venue"]), near),
        "do not go together": lambda: x["author"].sum(1) + x["paper"].sum(1),
        "add_self_loops=False": lambda: pyg.GATConv((7, 12), 4)((x["author"], x["paper"]), writes),
        "counts arcs at both ends": lambda: pyg.GCNConv(7, 4)(x["author"], near),
        "to which an offset was added": lambda: x["author"][(writes + torch.tensor([[3], [4]]))[0]],
        "offsets of their vertices": lambda: torch.cat([near, writes + torch.tensor([[3], [4]])], 1),
        "before it is cut": lambda: graph.__setitem__("new", {}),
        "there is no 'reads'": lambda: graph["reads"],
    }
    for says, run in refused.items():
        with pytest.raises((InputError, KeyError), match=says):
            run()
    with pytest.raises(InputError, match="algorithm='cd-0'"):
        typed_graph(random_typed(), comm, algorithm="cd-2")
