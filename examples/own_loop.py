"""A model and a training loop of one's own, on any number of ranks: the loss curve is that of one process.

distgnn partition communities:nodes=2000 --parts 2 --out parts
distgnn run -n 2 own_loop.py parts 30
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

import distgnn as dg


class Model(nn.Module):
    """Two mean aggregations with a skip connection; what works row by row is plain torch."""

    def __init__(self, in_feats: int, hidden: int, classes: int):
        super().__init__()
        self.first = dg.nn.SAGEConv(in_feats, hidden, "mean")
        self.second = dg.nn.SAGEConv(hidden, hidden, "mean")
        self.drop = nn.Dropout(0.3)
        self.read = nn.Linear(2 * hidden, classes)

    def forward(self, graph, feats):
        one = torch.relu(self.first(graph, feats))
        two = torch.relu(self.second(graph, self.drop(one)))
        return self.read(torch.cat([one, two], 1))


graph = dg.load(sys.argv[1])  # feats [N, D], labels [N] and masks [N] are rows of all ranks
epochs = int(sys.argv[2])
torch.manual_seed(0)
model = Model(graph.num_feats, 64, graph.num_classes)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

for _ in range(epochs):
    model.train()
    optimizer.zero_grad()
    logits = model(graph, graph.feats)
    loss = F.cross_entropy(logits[graph.train_mask], graph.labels[graph.train_mask])  # the mean over all ranks' rows
    loss.backward()  # gradients of parameters are summed over ranks
    optimizer.step()
    scheduler.step()

model.eval()
with torch.no_grad():
    logits = model(graph, graph.feats)
accuracy = (logits.argmax(1) == graph.labels)[graph.test_mask].double().mean()
everything = graph.gather_rows(logits)  # [N, C] in the original vertex order on rank 0, None elsewhere
if graph.rank == 0:
    print(f"loss {loss.item():.4f}  test accuracy {accuracy:.4f}  logits {list(everything.shape)}")
