"""Node classification with DGL's GraphConv."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import dgl.nn as dglnn
import torch
import torch.nn.functional as F

# dg+ import distgnn as dg
g = given()  # dg: g = dg.load(parts, dtype="float64")
features, labels = g.ndata["feat"], g.ndata["label"]
masks = g.ndata["train_mask"], g.ndata["val_mask"], g.ndata["test_mask"]


class GCN(torch.nn.Module):
    def __init__(self, in_size, hid_size, out_size):
        super().__init__()
        self.layers = torch.nn.ModuleList()
        self.layers.append(dglnn.GraphConv(in_size, hid_size, activation=F.relu, allow_zero_in_degree=True))
        self.layers.append(dglnn.GraphConv(hid_size, out_size, allow_zero_in_degree=True))

    def forward(self, g, features):
        h = features
        for layer in self.layers:
            h = layer(g, h)
        return h


def evaluate(g, features, labels, mask, model):
    model.eval()
    with torch.no_grad():
        logits = model(g, features)[mask]
        _, indices = torch.max(logits, dim=1)
        correct = torch.sum(indices == labels[mask])
        return correct.item() * 1.0 / len(labels[mask])


model = GCN(features.shape[1], 16, 4)
# dg+ model = dg.nn.distribute(model, g)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, g)
loss_fcn = torch.nn.CrossEntropyLoss()
losses = []
for epoch in range(4):
    model.train()
    logits = model(g, features)
    loss = loss_fcn(logits[masks[0]], labels[masks[0]])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    acc = evaluate(g, features, labels, masks[1], model)
    print(f"Epoch {epoch:05d} | Loss {loss.item():.4f} | Accuracy {acc:.4f}")
