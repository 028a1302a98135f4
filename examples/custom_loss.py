"""A loss of one's own: focal loss with class weights from the whole graph's label counts.

distgnn partition communities:nodes=2000 --parts 2 --out parts
distgnn run -n 2 custom_loss.py parts 30
"""

import sys

import torch
from torch.nn import functional as F

import distgnn as dg

graph = dg.load(sys.argv[1])
torch.manual_seed(0)
model = dg.nn.GraphSAGE(graph.num_feats, 64, graph.num_classes)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

labels = graph.labels[graph.train_mask]  # of all ranks: what is counted, or averaged, is the whole graph's
counts = torch.bincount(labels, minlength=graph.num_classes)
class_weight = counts.sum() / (graph.num_classes * counts.clamp(min=1)).float()


def focal_loss(logits: torch.Tensor, labels: torch.Tensor, power: float = 2.0) -> torch.Tensor:
    losses = F.cross_entropy(logits, labels, reduction="none")
    return (class_weight[labels] * (1 - torch.exp(-losses)) ** power * losses).mean()


for epoch in range(int(sys.argv[2])):
    optimizer.zero_grad()
    loss = focal_loss(model(graph, graph.feats)[graph.train_mask], labels)
    loss.backward()
    optimizer.step()
    if graph.rank == 0 and epoch % 10 == 9:
        print(f"epoch {epoch + 1}  focal loss {loss.item():.4f}")
