"""A model of DGL's layers on two ranks: no partition, no launcher, no loop. Needs DGL: Python 3.10 or 3.11.

python fit_dgl.py
"""

import distgnn as dg

dg.import_dgl()  # DGL 1.1.3 beside a new setuptools
import torch  # noqa: E402
from dgl.nn import SAGEConv  # noqa: E402


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(64, 128, "mean"), SAGEConv(128, 10, "mean")
        self.drop = torch.nn.Dropout(0.3)

    def forward(self, graph, feats):
        return self.second(graph, self.drop(self.first(graph, feats).relu()))


graph = dg.load_graph("communities:nodes=2000").to_dgl()  # or any homogeneous dgl.DGLGraph
result = dg.fit(graph, Model(), ranks=2, epochs=30, lr=0.01)
logits = result.model(graph, graph.ndata["feat"])  # the trained module, without ranks
print(f"test accuracy {result.test_accuracy:.4f}")
print(f"largest difference to result.predict(): {(logits - result.predict()).abs().max():.1e}")
