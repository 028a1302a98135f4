"""A graph of PyG with doubles, as scripts have it, whole and on ranks: what a function gives of both must be equal."""

import numpy as np
import torch
from cut_graphs import dist_graph

from distgnn.datasets import GraphData
from distgnn.graph.face.row_graph import with_rows

N, D = 30, 8
ORDERS = ("doubled", "sorted")  # of arcs, in which the source of an ordinary tensor is known


def source_arcs(order: str) -> torch.Tensor:
    """The arcs of an undirected graph with doubles, as scripts have them."""
    pairs = torch.from_numpy(np.random.default_rng(2).integers(0, N, (90, 2)).T)
    pairs = pairs[:, pairs[0] != pairs[1]]
    pairs = torch.cat([pairs, pairs[:, :5]], 1)
    both = torch.cat([pairs, pairs.flip(0)], 1)
    if order == "doubled":
        return both
    loops = torch.cat([both, torch.tensor([[3, 9], [3, 9]])], 1)
    return loops[:, np.lexsort(loops.numpy()[::-1])] if order == "sorted" else loops


def scene(comm, order: str):
    """(the whole graph, the graph on ranks), in float64."""
    from torch_geometric.data import Data

    torch.manual_seed(4)
    x, y = torch.randn(N, D, dtype=torch.float64), torch.randint(0, 3, (N,))
    data = Data(x=x, edge_index=source_arcs(order), y=y, num_nodes=N)
    graph = with_rows(dist_graph(GraphData.from_pyg(data, directed=False), comm))
    graph.x = x
    return data, graph


def same_along_arcs(comm, function, orders=ORDERS, rtol=1e-9, atol=1e-11) -> None:
    """Raise AssertionError unless the tensors that `function(data)` gives are those of the whole graph."""
    for order in orders:
        found = []
        for data in scene(comm, order):
            torch.manual_seed(3)
            found.append([one.whole() if hasattr(one, "whole") else one for one in function(data)])
        for plain, ours in zip(*found, strict=True):
            torch.testing.assert_close(ours, plain, rtol=rtol, atol=atol, equal_nan=True)
