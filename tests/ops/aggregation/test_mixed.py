"""Sums of neighbours mixed with other rows: what a backward pass makes again."""

import torch
from cut_graphs import random_graph, whole_graph

from distgnn.ops import with_neighbours
from distgnn.ops.rowwise.chain import enter


def test_rows_with_neighbours_are_made_again_in_their_own_dtype():
    """The next layer's backward pass multiplies them."""
    graph = whole_graph(random_graph(1, num_nodes=60), dtype="float32")
    feats = enter(graph, graph.feats.bfloat16())
    out = with_neighbours(graph, feats, torch.full((1,), 0.3, requires_grad=True))
    again = out.slot.again[:7]
    assert again.dtype == out.dtype == torch.bfloat16 and torch.equal(again, out.tensor[:7])
