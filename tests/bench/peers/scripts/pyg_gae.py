"""Link prediction with a graph auto-encoder: pairs of ids, scores of their rows."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import torch
from torch_geometric.nn import GAE, GCNConv

# dg+ import distgnn as dg
data, (pos, neg) = given(), pairs()  # dg: data, (pos, neg) = dg.load(parts, dtype="float64"), pairs()


class Encoder(torch.nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, 2 * out_channels)
        self.conv2 = GCNConv(2 * out_channels, out_channels)

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


model = GAE(Encoder(data.num_features, 8))
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, data)
losses = []
for _ in range(4):
    model.train()
    optimizer.zero_grad()
    z = model.encode(data.x, data.edge_index)
    loss = model.recon_loss(z, pos, neg)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
with torch.no_grad():
    z = model.encode(data.x, data.edge_index)
    scores = torch.cat([model.decode(z, pos), model.decode(z, neg)]).tolist()
print(f"{sum(scores[:40]) / 40:.5f} {sum(scores[40:]) / 40:.5f}")
