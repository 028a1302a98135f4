"""A perceptron whose predictions are corrected and smoothed over the graph afterwards."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import torch
import torch.nn.functional as F
from torch_geometric.nn import MLP, CorrectAndSmooth

# dg+ import distgnn as dg
data, split_idx = given(), splits()  # dg: data, split_idx = dg.load(parts, dtype="float64"), splits()
train_idx = split_idx["train"]
x_train, y_train = data.x[train_idx], data.y[train_idx]
model = MLP([data.x.size(-1), 16, 4], norm="batch_norm", act="relu")
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, data)
losses = []
for _ in range(4):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x_train), y_train)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
model.eval()
with torch.no_grad():
    y_soft = model(data.x).softmax(dim=-1)
post = CorrectAndSmooth(5, 0.9, 5, 0.8, autoscale=True)
y_soft = post.correct(y_soft, y_train, train_idx, data.edge_index)
y_soft = post.smooth(y_soft, y_train, train_idx, data.edge_index)
pred = y_soft.argmax(dim=-1)
for name, idx in split_idx.items():
    print(f"{name}: {float((pred[idx] == data.y[idx]).double().mean()):.4f}")
