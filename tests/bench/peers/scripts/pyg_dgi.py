"""Deep Graph Infomax: a summary of all vertices, and rows in another order as the corruption."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import torch
from torch_geometric.nn import DeepGraphInfomax, GCNConv

# dg+ import distgnn as dg
data, order = given(), permutation()  # dg: data, order = dg.load(parts, dtype="float64"), permutation()


class Encoder(torch.nn.Module):
    def __init__(self, in_channels, hidden):
        super().__init__()
        self.conv, self.prelu = GCNConv(in_channels, hidden), torch.nn.PReLU(hidden)

    def forward(self, x, edge_index):
        return self.prelu(self.conv(x, edge_index))


model = DeepGraphInfomax(
    hidden_channels=16,
    encoder=Encoder(data.num_features, 16),
    summary=lambda z, *args, **kwargs: z.mean(dim=0).sigmoid(),
    corruption=lambda x, edge_index: (x[order], edge_index),
)
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, data)
losses = []
for _ in range(4):
    model.train()
    optimizer.zero_grad()
    pos_z, neg_z, summary = model(data.x, data.edge_index)
    loss = model.loss(pos_z, neg_z, summary)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
model.eval()
z, _, _ = model(data.x, data.edge_index)
print(f"{float(z.std()):.5f} {float(z.mean()):.5f}")
