"""A model of PyG on two ranks: no partition, no launcher, no loop. Needs PyG.

python fit_pyg.py
"""

from torch_geometric.nn.models import GAT

import distgnn as dg

data = dg.load_graph("communities:nodes=2000").to_pyg()  # or any torch_geometric.data.Data
model = GAT(data.num_features, 64, num_layers=2, out_channels=10, heads=4, dropout=0.3)
result = dg.fit(data, model, ranks=2, epochs=30, lr=0.01, callbacks=[dg.LivePlot("curves.png")])
logits = result.model(data.x, data.edge_index)  # the trained module, without ranks
print(f"test accuracy {result.test_accuracy:.4f}")
print(f"largest difference to result.predict(): {(logits - result.predict()).abs().max():.1e}")
