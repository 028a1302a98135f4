"""Link prediction with DGL: dot products of pairs of ids against drawn ones."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import dgl.nn as dglnn
import torch
import torch.nn.functional as F

# dg+ import distgnn as dg
g, (pos, neg) = given(), pairs()  # dg: g, (pos, neg) = dg.load(parts, dtype="float64"), pairs()


class Model(torch.nn.Module):
    def __init__(self, in_feats, hidden):
        super().__init__()
        self.conv1, self.conv2 = dglnn.SAGEConv(in_feats, hidden, "mean"), dglnn.SAGEConv(hidden, hidden, "mean")

    def forward(self, g, h):
        return self.conv2(g, F.relu(self.conv1(g, h)))


def predict(h, edges):
    return (h[edges[0]] * h[edges[1]]).sum(-1)


model = Model(g.ndata["feat"].shape[1], 16)
# dg+ model = dg.nn.distribute(model, g)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, g)
losses = []
for _ in range(4):
    h = model(g, g.ndata["feat"])
    scores = torch.cat([predict(h, pos), predict(h, neg)])
    wanted = torch.cat([torch.ones(pos.shape[1]), torch.zeros(neg.shape[1])])
    loss = F.binary_cross_entropy_with_logits(scores, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
with torch.no_grad():
    right = ((predict(h, pos) > 0).sum() + (predict(h, neg) <= 0).sum()).item()
print(f"{right} of {pos.shape[1] + neg.shape[1]}")
