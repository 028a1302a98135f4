"""A sum of layers along relations sends rows of a type once for all of them, and hides no layer from hooks."""

import pytest
import torch
from against_dgl import default_float64
from typed_parts import random_typed, typed_graph

pyg = pytest.importorskip("torch_geometric.nn")


@pytest.mark.mpi(2)
@default_float64()
def test_relations_from_one_type_share_one_exchange(comm):
    graph, sent = typed_graph(random_typed(same_width=True), comm), {}
    counters = graph.plain.transport.counters
    for aggr in ("sum", "mean"):  # a mean goes relation by relation
        layer = pyg.HeteroConv({key: pyg.SAGEConv(8, 8) for key in graph.edge_types}, aggr)
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
    layer = pyg.HeteroConv({key: pyg.SAGEConv(8, 8) for key in graph.edge_types}, "sum")
    with torch.nn.modules.module.register_module_forward_hook(lambda module, _inputs, _output: seen.append(module)):
        layer(graph.x_dict, graph.edge_index_dict)
    assert set(layer.convs.values()) <= set(seen)
