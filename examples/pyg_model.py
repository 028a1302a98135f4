"""A script for PyG on several ranks: one line is changed (marked with #), and rank 0 prints. Needs PyG.

distgnn partition communities:nodes=2000 --parts 2 --out parts
distgnn run -n 2 pyg_model.py parts 30
"""

import sys

import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv, GCNConv

import distgnn as dg


class Model(torch.nn.Module):
    def __init__(self, in_channels: int, hidden: int, classes: int, heads: int = 4):
        super().__init__()
        self.first = GATConv(in_channels, hidden // heads, heads, dropout=0.3)
        self.second = GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.3, training=self.training)
        x = F.elu(self.first(x, edge_index))
        return self.second(x, edge_index)


data = dg.load(sys.argv[1])  # was: a torch_geometric.data.Data
model = Model(data.num_feats, 64, data.num_classes)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _ in range(int(sys.argv[2])):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    right = model(data.x, data.edge_index).argmax(1) == data.y
accuracy = right[data.test_mask].double().mean()
if data.rank == 0:
    print(f"loss {loss.item():.4f}  test accuracy {accuracy:.4f}")
