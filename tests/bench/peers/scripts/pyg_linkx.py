"""LINKX: a row of the adjacency per vertex, as a table of vertices, beside a perceptron of the features."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import torch
import torch.nn.functional as F
from torch_geometric.nn import LINKX

# dg+ import distgnn as dg
data = given()  # dg: data = dg.load(parts, dtype="float64")
model = LINKX(data.num_nodes, data.num_features, 16, 4, num_layers=2)
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=1e-3)
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
pred = model(data.x, data.edge_index).argmax(dim=1)
print(f"{int((pred == data.y)[data.val_mask].sum())} right")
