"""DGL's SAGEConv with norms of rows, and a scheduler of the rate."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import dgl.nn as dglnn
import torch
import torch.nn.functional as F

# dg+ import distgnn as dg
g = given()  # dg: g = dg.load(parts, dtype="float64")
layers = torch.nn.ModuleList([dglnn.SAGEConv(8, 16, "mean", norm=F.normalize), dglnn.SAGEConv(16, 4, "pool")])
# dg+ layers = dg.nn.distribute(layers, g)
optimizer = torch.optim.Adam(layers.parameters(), lr=0.02)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, g)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
train_nid = g.ndata["train_mask"].nonzero().squeeze()
losses = []
for _ in range(5):
    optimizer.zero_grad()
    h = layers[1](g, layers[0](g, g.ndata["feat"]).relu())
    loss = F.cross_entropy(h[train_nid], g.ndata["label"][train_nid])
    loss.backward()
    optimizer.step()
    scheduler.step(loss.item())
    losses.append(loss.item())
print(f"{losses[-1]:.5f} {optimizer.param_groups[0]['lr']}")
