"""DGL's GATConv with a residual, and activations in place."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import dgl.nn as dglnn
import torch
import torch.nn.functional as F

# dg+ import distgnn as dg
g, split = given(), splits()  # dg: g, split = dg.load(parts, dtype="float64"), splits()
feat, labels = g.ndata["feat"], g.ndata["label"]


class GAT(torch.nn.Module):
    def __init__(self, in_size, hidden, out_size, heads):
        super().__init__()
        free = {"allow_zero_in_degree": True}
        self.first = dglnn.GATConv(in_size, hidden, heads, residual=True, **free)
        self.norm = torch.nn.BatchNorm1d(hidden * heads)
        self.last = dglnn.GATConv(hidden * heads, out_size, 1, residual=True, **free)

    def forward(self, g, h):
        h = self.first(g, h).flatten(1)
        h = F.relu(self.norm(h), inplace=True)
        return self.last(g, h).mean(1).add_(0.1)


model = GAT(feat.shape[1], 4, 4, 2)
# dg+ model = dg.nn.distribute(model, g)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, g)
losses = []
for _ in range(4):
    model.train()
    optimizer.zero_grad()
    logits = model(g, feat)
    loss = F.cross_entropy(logits[split["train"]], labels[split["train"]])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
model.eval()
right = (model(g, feat)[split["test"]].argmax(1) == labels[split["test"]]).sum().item()
print(f"{right} right")
