"""A loop of one's own on two ranks, from a script or a notebook that no launcher has started.

python launch.py
"""

import torch
from torch.nn import functional as F

import distgnn as dg


def train(folder: str, epochs: int) -> tuple[int, float, float]:
    """What each rank does: a loop for one process."""
    data = dg.load(folder)
    torch.manual_seed(0)
    model = dg.nn.GraphSAGE(data.num_feats, 64, data.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        optimizer.zero_grad()
        logits = model(data, data.feats)
        loss = F.cross_entropy(logits[data.train_mask], data.labels[data.train_mask])
        loss.backward()
        optimizer.step()
    right = (logits.argmax(1) == data.labels)[data.test_mask]
    return data.rank, loss.item(), right.double().mean().item()


dg.partition_graph("communities:nodes=2000", 2, "parts", overwrite=True)
for rank, loss, accuracy in dg.launch(train, ("parts", 30), ranks=2):
    print(f"rank {rank}: loss {loss:.4f}  test accuracy {accuracy:.4f}")  # the same on every rank
