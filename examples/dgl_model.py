"""A model of DGL's own layers, unchanged, trained by the Trainer. Needs DGL: Python 3.10 or 3.11.

distgnn partition communities:nodes=2000 --parts 2 --out parts
distgnn run -n 2 dgl_model.py parts 30
"""

import sys

from torch import nn

import distgnn as dg

dg.import_dgl()  # DGL 1.1.3 beside a new setuptools
from dgl.nn import GATConv, SAGEConv  # noqa: E402


class Model(nn.Module):
    def __init__(self, in_feats: int, hidden: int, classes: int, heads: int = 4):
        super().__init__()
        self.first = GATConv(in_feats, hidden // heads, heads, allow_zero_in_degree=True)
        self.norm = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(0.3)
        self.second = SAGEConv(hidden, classes, "mean")

    def forward(self, graph, feats):
        rows = self.first(graph, feats).flatten(1)
        return self.second(graph, self.drop(self.norm(rows).relu()))


graph = dg.load(sys.argv[1])
model = Model(graph.num_feats, 64, graph.num_classes)  # its rows are those of all ranks, in norms and dropout too
result = dg.Trainer(model, graph, dg.TrainConfig(epochs=int(sys.argv[2]), lr=0.01)).fit()
if graph.rank == 0:
    print(result)
