"""Contrast of two views of some vertices: features masked by column, each against the others of a batch of ids."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

# dg+ import distgnn as dg
data, batch = given(), some_ids()  # dg: data, batch = dg.load(parts, dtype="float64"), some_ids()


class Model(torch.nn.Module):
    def __init__(self, in_channels, hidden):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(in_channels, hidden), GCNConv(hidden, hidden)
        self.fc1, self.fc2 = torch.nn.Linear(hidden, hidden), torch.nn.Linear(hidden, hidden)

    def forward(self, x, edge_index):
        return self.conv2(F.elu(self.conv1(x, edge_index)), edge_index)

    def project(self, z):
        return F.normalize(self.fc2(F.elu(self.fc1(z))))


def contrast(one, two, tau=0.5):
    between, within = (one @ two.t() / tau).exp(), (one @ one.t() / tau).exp()
    return -torch.log(between.diag() / (within.sum(1) + between.sum(1) - within.diag())).mean()


model = Model(data.num_features, 16)
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, data)
losses = []
for _ in range(3):
    optimizer.zero_grad()
    views = []
    for keep in (0, 1):
        mask = (torch.arange(data.num_features) % 3 != keep).to(data.x.dtype)
        views.append(model.project(model(data.x * mask, data.edge_index)[batch]))
    loss = (contrast(*views) + contrast(*reversed(views))) / 2
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
