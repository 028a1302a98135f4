"""GraphSAGE with batch norm, and the splits as ids, in the manner of the OGB examples."""
# ruff: noqa: F821 - given and its like: what the script has beside its graph (cases_scripts.py)

import itertools

import torch
import torch.nn.functional as F
from torch_geometric.nn import SAGEConv

# dg+ import distgnn as dg
data, split_idx = given(), splits()  # dg: data, split_idx = dg.load(parts, dtype="float64"), splits()


class SAGE(torch.nn.Module):
    def __init__(self, in_channels, hidden, out_channels, num_layers):
        super().__init__()
        widths = [in_channels] + [hidden] * (num_layers - 1) + [out_channels]
        self.convs = torch.nn.ModuleList([SAGEConv(a, b) for a, b in itertools.pairwise(widths)])
        self.bns = torch.nn.ModuleList([torch.nn.BatchNorm1d(hidden) for _ in range(num_layers - 1)])

    def forward(self, x, edge_index):
        for conv, bn in zip(self.convs, self.bns, strict=False):
            x = F.relu(bn(conv(x, edge_index)))
        return self.convs[-1](x, edge_index).log_softmax(dim=-1)


train_idx = split_idx["train"]
model = SAGE(data.num_features, 16, 4, 3)
# dg+ model = dg.nn.distribute(model, data)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
# dg+ optimizer = dg.DistributedOptimizer(optimizer, data)
labels = data.y.view(-1, 1)
losses = []
for epoch in range(5):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)[train_idx]
    loss = F.nll_loss(out, labels.squeeze(1)[train_idx])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        y_pred = model(data.x, data.edge_index).argmax(dim=-1, keepdim=True)
        accs = {name: float((y_pred[idx] == labels[idx]).double().mean()) for name, idx in split_idx.items()}
    print(
        f"Epoch: {epoch:02d}, Loss: {loss:.4f}, " + ", ".join(f"{name}: {100 * acc:.2f}%" for name, acc in accs.items())
    )
