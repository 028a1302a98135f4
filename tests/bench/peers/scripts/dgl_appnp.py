"""A perceptron, propagated by DGL's APPNPConv."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import dgl.nn as dglnn
import torch
import torch.nn.functional as F

# dg+ import distgnn as dg
g = given()  # dg: g = dg.load(parts, dtype="float64")
mlp = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(inplace=True), torch.nn.Linear(16, 4))
propagate = dglnn.APPNPConv(5, 0.1)
optimizer = torch.optim.Adam(mlp.parameters(), lr=0.01)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, g)
mask, labels = g.ndata["train_mask"], g.ndata["label"]
losses = []
for _ in range(4):
    optimizer.zero_grad()
    logits = propagate(g, mlp(g.ndata["feat"]))
    loss = F.nll_loss(F.log_softmax(logits, 1)[mask], labels[mask])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
