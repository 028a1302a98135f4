"""Node classification with two GCN layers, as most first scripts have it."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

# dg+ import distgnn as dg
data = given()  # dg: data = dg.load(parts, dtype="float64")


class GCN(torch.nn.Module):
    def __init__(self, in_channels, hidden, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden)
        self.conv2 = GCNConv(hidden, out_channels)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        return self.conv2(x, edge_index)


model = GCN(data.num_features, 16, int(data.y.max()) + 1)
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, data)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index).argmax(dim=-1)
    accs = []
    for mask in [data.train_mask, data.val_mask, data.test_mask]:
        accs.append(int((pred[mask] == data.y[mask]).sum()) / int(mask.sum()))
    return accs


losses = []
best = 0
for epoch in range(1, 6):
    losses.append(train())
    train_acc, val_acc, test_acc = test()
    best = max(best, val_acc)
    print(f"Epoch: {epoch:03d}, Train: {train_acc:.4f}, Val: {best:.4f}, Test: {test_acc:.4f}")
