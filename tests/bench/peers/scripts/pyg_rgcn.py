"""RGCN on a graph without features: the first layer's weights are a table of vertices per relation."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import torch
import torch.nn.functional as F
from torch_geometric.nn import RGCNConv

# dg+ import distgnn as dg
data = given("relations")  # dg: data = dg.load(relations_parts, dtype="float64")


class RGCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = RGCNConv(data.num_nodes, 16, 3, num_bases=2)
        self.conv2 = RGCNConv(16, 4, 3, num_bases=2)

    def forward(self, edge_index, edge_type):
        x = F.relu(self.conv1(None, edge_index, edge_type))
        return F.log_softmax(self.conv2(x, edge_index, edge_type), dim=1)


model = RGCN()
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.0005)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, data)
losses = []
for _ in range(4):
    model.train()
    optimizer.zero_grad()
    out = model(data.edge_index, data.edge_type)
    loss = F.nll_loss(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
pred = model(data.edge_index, data.edge_type).argmax(dim=-1)
print(f"{float((pred[data.test_mask] == data.y[data.test_mask]).double().mean()):.4f}")
