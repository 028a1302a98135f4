"""A variational graph auto-encoder: noise shaped like rows, and a divergence that is a mean over vertices."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import torch
from torch_geometric.nn import VGAE, GCNConv

# dg+ import distgnn as dg
data, (pos, neg) = given(), pairs()  # dg: data, (pos, neg) = dg.load(parts, dtype="float64"), pairs()


class Encoder(torch.nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, 16)
        self.mu, self.logstd = GCNConv(16, out_channels), GCNConv(16, out_channels)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        return self.mu(x, edge_index), self.logstd(x, edge_index)


model = VGAE(Encoder(data.num_features, 8))
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, data)
losses = []
for _ in range(4):
    model.train()
    optimizer.zero_grad()
    z = model.encode(data.x, data.edge_index)
    loss = model.recon_loss(z, pos, neg) + (1 / data.num_nodes) * model.kl_loss()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
