"""Link prediction in a loop of one's own: an encoder, a dot product, negatives that do not depend on ranks.

distgnn partition communities:nodes=2000 --parts 2 --out parts --link-split 0.05,0.1
distgnn run -n 2 link_prediction.py parts 30
"""

import sys

import torch
from torch.nn import functional as F

import distgnn as dg

graph = dg.load(sys.argv[1])  # edges for validation and test pass no messages
epochs = int(sys.argv[2])
torch.manual_seed(0)
encoder = dg.nn.GraphSAGE(graph.num_feats, 64, 64, num_layers=2)
model = dg.nn.PairPredictor(encoder, dg.nn.PairDecoder("dot", 64))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

train = graph.edge_pairs("train")  # pairs [m, 2], global ids: those whose source this rank owns
positive = graph.look_up(train.pairs)  # where the rows of both ends are; other ranks' are fetched in each step

for graph.step in range(epochs):  # the step is part of the key of negatives and of dropout masks
    model.train()
    optimizer.zero_grad()
    rows = model(graph, graph.feats)
    negative = graph.look_up(dg.negative_edges(graph, train, per_positive=1))
    joined = F.softplus(-model.scores(positive, rows))
    apart = F.softplus(model.scores(negative, rows))
    loss = graph.global_mean(joined) + graph.global_mean(apart)  # each rank has scores of its own pairs
    loss.backward()
    optimizer.step()

model.eval()
test = graph.edge_pairs("test")
with torch.no_grad():
    rows = model(graph, graph.feats)
    edges = model.scores(graph.look_up(test.pairs), rows)
    others = model.scores(graph.look_up(test.negatives), rows)
above = graph.global_mean((edges > 0).double()), graph.global_mean((others > 0).double())
if graph.rank == 0:
    print(f"loss {loss.item():.4f}  predicted: {above[0]:.3f} of the test edges, {above[1]:.3f} of pairs without one")
