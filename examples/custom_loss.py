"""A loss of one's own: focal loss with class weights from the whole graph's label counts.

distgnn partition communities:nodes=5000 --parts 2 --out parts
distgnn run -n 2 custom_loss.py parts 30
"""

import sys

import torch
from torch.nn import functional as F

import distgnn as dg
from distgnn.comm import sum_over_ranks

graph = dg.load(sys.argv[1])
torch.manual_seed(0)
model = dg.nn.GraphSAGE(graph.num_feats, 64, graph.num_classes)
optimizer = dg.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01), graph)

labels = graph.labels[graph.train_mask]
# A number of the whole graph is a sum over ranks: each has counted the labels of its own vertices only.
counts = torch.from_numpy(sum_over_ranks(graph.comm, torch.bincount(labels, minlength=graph.num_classes).numpy()))
class_weight = counts.sum() / (graph.num_classes * counts.clamp(min=1)).float()


def focal_loss(logits: torch.Tensor, labels: torch.Tensor, power: float = 2.0) -> torch.Tensor:
    """One loss per row: the mean over all ranks is taken by `graph.global_mean`."""
    losses = F.cross_entropy(logits, labels, reduction="none")
    return class_weight[labels] * (1 - torch.exp(-losses)) ** power * losses


for graph.step in range(int(sys.argv[2])):
    optimizer.zero_grad()
    loss = graph.global_mean(focal_loss(model(graph, graph.feats)[graph.train_mask], labels))
    loss.backward()
    optimizer.step()
    if graph.rank == 0 and graph.step % 10 == 9:
        print(f"epoch {graph.step + 1}  focal loss {loss.item():.4f}")
