"""What rows of all ranks cost: an epoch of a PyG model in a loop of one's own, with rows and with plain tensors in turn.

    mpiexec -n 2 python tests/bench/rows/cost.py PARTS [--epochs 60] [--hidden 256]

Prints milliseconds per epoch (median over pairs) and their ratio, for GCN, SAGE and GAT.
"""

import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import distgnn as dg

LAYERS = {"gcn": GCNConv, "sage": SAGEConv, "gat": GATConv}


class Model(torch.nn.Module):
    """Two layers."""

    def __init__(self, kind: str, widths: tuple[int, int, int]):
        super().__init__()
        self.first, self.second = (LAYERS[kind](*pair) for pair in (widths[:2], widths[1:]))

    def forward(self, x, edge_index):
        return self.second(F.dropout(F.relu(self.first(x, edge_index)), 0.5, self.training), edge_index)


class Loop:
    """A model on one face of the graph."""

    def __init__(self, graph, kind: str, hidden: int):
        self.graph, plain = graph, graph is graph.plain
        model = Model(kind, (graph.num_feats, hidden, graph.num_classes)).to(graph.weight_dtype)
        self.model = dg.nn.distribute(model, graph) if plain else model
        self.optimizer = dg.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01), graph)
        self.loss = self._mean if plain else self._cross_entropy

    def _cross_entropy(self, logits):
        mask = self.graph.train_mask
        return F.cross_entropy(logits[mask], self.graph.y[mask])

    def _mean(self, logits):
        mask = self.graph.train_mask
        return self.graph.global_mean(F.cross_entropy(logits[mask], self.graph.y[mask], reduction="none"))

    def epoch(self) -> float:
        """Seconds."""
        started = time.perf_counter()
        self.optimizer.zero_grad()
        self.loss(self.model(self.graph.x, self.graph.edge_index)).backward()
        self.optimizer.step()
        return time.perf_counter() - started


def main() -> None:
    """Both faces in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("parts")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--hidden", type=int, default=256)
    given = parser.parse_args()
    rows, plain = dg.load(given.parts, say=None), dg.load(given.parts, say=None, plain_tensors=True)
    for kind in LAYERS:
        loops = [Loop(graph, kind, given.hidden) for graph in (rows, plain)]
        seconds = np.array([[loop.epoch() for loop in loops] for _ in range(given.epochs)])[5:]
        middle, ratio = 1e3 * np.median(seconds, axis=0), np.median(seconds[:, 0] / seconds[:, 1])
        if rows.rank == 0:
            print(f"{kind:5} rows {middle[0]:8.2f} ms  plain {middle[1]:8.2f} ms  ratio {ratio:.3f}", flush=True)


if __name__ == "__main__":
    main()
