"""GAT with dropped features and attention."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv

# dg+ import distgnn as dg
data = given()  # dg: data = dg.load(parts, dtype="float64")


class GAT(torch.nn.Module):
    def __init__(self, in_channels, hidden, out_channels, heads):
        super().__init__()
        self.conv1 = GATConv(in_channels, hidden, heads, dropout=0.6)
        self.conv2 = GATConv(hidden * heads, out_channels, heads=1, concat=False, dropout=0.6)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.6, training=self.training)
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, p=0.6, training=self.training)
        return self.conv2(x, edge_index)


model = GAT(data.num_features, 4, 4, 2)
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, data)
losses = []
for _ in range(4):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
model.eval()
pred = model(data.x, data.edge_index).argmax(-1)
correct = (pred[data.test_mask] == data.y[data.test_mask]).sum()
print(f"Accuracy: {int(correct) / int(data.test_mask.sum()):.4f}")
