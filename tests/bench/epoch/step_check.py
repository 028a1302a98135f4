"""What the comparison of steps costs: epochs of a script with it and without, in turn, five at a time.

    distgnn run -n 2 tests/bench/epoch/step_check.py PARTS [--conv gcn|sage] [--hidden 16] [--epochs 400]

Prints the median of each, and by how much the quicker quarter of the epochs with the comparison is longer.
"""

import argparse
import time

import numpy as np
import torch
from torch.nn import functional as F
from torch_geometric.nn import GCNConv, SAGEConv

import distgnn as dg


class Net(torch.nn.Module):
    def __init__(self, conv: type, feats: int, hidden: int, classes: int):
        super().__init__()
        self.first, self.last = conv(feats, hidden), conv(hidden, classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.last(F.dropout(self.first(x, edge_index).relu(), 0.5, self.training), edge_index)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("parts")
    options.add_argument("--conv", choices=("gcn", "sage"), default="gcn")
    options.add_argument("--hidden", type=int, default=16)
    options.add_argument("--epochs", type=int, default=400)
    given = options.parse_args()
    data = dg.load(given.parts)
    alike = data.plain.transport.crew.alike
    torch.manual_seed(0)
    conv = {"gcn": GCNConv, "sage": SAGEConv}[given.conv]
    model = Net(conv, data.num_features, given.hidden, int(data.num_classes))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for epoch in range(given.epochs):
        alike.wanted = bool(epoch // 5 % 2)
        started = time.perf_counter()
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)[data.train_mask]
        F.cross_entropy(out, data.y[data.train_mask]).backward()
        optimizer.step()
        seconds[alike.wanted].append(time.perf_counter() - started)
    if data.rank == 0:
        with_it, without = (np.array(seconds[wanted][5:]) * 1e3 for wanted in (True, False))
        quick = [np.quantile(one, 0.25) for one in (with_it, without)]
        medians = f"{np.median(with_it):.3f} ms with the comparison, {np.median(without):.3f} without"
        print(f"{given.conv} {given.hidden}: {medians}; first quarter {100 * (quick[0] / quick[1] - 1):+.2f} %")


main()
