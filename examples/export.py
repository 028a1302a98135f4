"""A trained run as a plain DGL model, in one process without MPI, compared with `distgnn predict`. Needs DGL.

distgnn partition communities:nodes=2000 --parts 2 --out parts
distgnn train parts --epochs 30 --hidden-feats 64 --run-dir run
distgnn predict run parts --out logits.npy
python export.py run communities:nodes=2000 logits.npy
"""

import sys

import numpy as np
import torch

import distgnn as dg

run, source, predicted = sys.argv[1:]
model = dg.to_dgl(run)  # best weights of the run, in DGL's own layers
graph = dg.load_graph(source).to_dgl()  # or any other dgl.DGLGraph
with torch.no_grad():
    logits = model(graph, graph.ndata["feat"])
difference = np.abs(logits.numpy() - np.load(predicted)).max()
print(f"largest difference to distgnn predict: {difference:.1e}")
torch.save(model.state_dict(), "model.pt")  # torch's usual file: it loads without distgnn
