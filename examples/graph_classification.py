"""Graph classification: many small graphs in one file, cut as one graph; one row per graph, equal on all ranks.

python graph_classification.py make graphs
distgnn partition graphs --parts 2 --out parts
distgnn run -n 2 graph_classification.py parts 30
"""

import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import distgnn as dg

NUM_GRAPHS, SIZE = 400, 12


def make(folder: str) -> None:
    """Rings (class 0) and stars (class 1) of 12 vertices, features without meaning; labels of graphs in a file."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, NUM_GRAPHS)
    ring = np.stack([np.arange(SIZE), np.roll(np.arange(SIZE), 1)], axis=1)
    star = np.stack([np.zeros(SIZE - 1, dtype=int), np.arange(1, SIZE)], axis=1)
    edges = np.concatenate([(star if label else ring) + SIZE * number for number, label in enumerate(labels)])
    num_nodes = NUM_GRAPHS * SIZE
    feats = random.standard_normal((num_nodes, 8)).astype(np.float32)
    graph_ids = np.repeat(np.arange(NUM_GRAPHS), SIZE)
    dg.GraphData.from_arrays(edges, num_nodes, directed=False, feats=feats, graph_ids=graph_ids).save(folder)
    np.save("graph_labels.npy", labels)


class Model(nn.Module):
    """Two layers of sums, and the mean over each graph."""

    def __init__(self, in_feats: int, hidden: int, classes: int):
        super().__init__()
        self.first = dg.nn.GINConv(nn.Linear(in_feats, hidden), "sum")
        self.second = dg.nn.GINConv(nn.Linear(hidden, hidden), "sum")
        self.read = nn.Linear(hidden, classes)

    def forward(self, graph, feats):
        rows = torch.relu(self.first(graph, feats))
        rows = torch.relu(self.second(graph, rows))
        return self.read(dg.ops.readout(graph, rows, "mean"))  # [num_graphs, classes] on every rank


def train(parts: str, epochs: int) -> None:
    graph = dg.load(parts)
    labels = torch.from_numpy(np.load("graph_labels.npy"))
    known = torch.arange(graph.num_graphs) % 4 != 0  # every fourth graph is for testing
    torch.manual_seed(0)
    model = Model(graph.num_feats, 32, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        optimizer.zero_grad()
        logits = model(graph, graph.feats)
        loss = F.cross_entropy(logits[known], labels[known])
        loss.backward()
        optimizer.step()
    right = (model(graph, graph.feats).argmax(1) == labels)[~known].double().mean()
    if graph.rank == 0:
        print(f"loss {loss.item():.4f}  test accuracy {right:.3f} of {int((~known).sum())} graphs")


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    train(sys.argv[1], int(sys.argv[2]))
