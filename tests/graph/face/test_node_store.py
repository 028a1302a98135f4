"""Columns by type have the manners of PyG's HeteroData."""

import pytest
import torch
from against_dgl import default_float64
from typed_parts import random_typed, typed_graph

from distgnn import nn as dnn

pytest.importorskip("torch_geometric")
CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")


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
