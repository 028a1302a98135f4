"""A graph with features stored sparse, and what torch makes of them as an array."""

import numpy as np
import torch
from cut_graphs import random_graph
from scipy import sparse

from distgnn.config.run import parse_feat_norm
from distgnn.datasets import GraphData

WIDTH = 40


def sparse_graph(seed: int = 0) -> tuple[GraphData, np.ndarray]:
    """A graph with features stored sparse, and the same as an array: a constant column, empty columns and rows."""
    data = random_graph(seed)
    feats = sparse.random(data.num_nodes, WIDTH, 0.05, "lil", dtype=np.float32, random_state=seed)
    feats[:, 3] = 0.3
    feats[:, 5], feats[11] = 0, 0
    feats = feats.tocsr()
    feats.eliminate_zeros()
    return GraphData(**vars(data) | {"feats": feats}), feats.toarray()


def plain(feats: np.ndarray, chain: str, rows=slice(None)) -> torch.Tensor:
    """What torch makes of the whole matrix; `rows`: those that statistics are of."""
    x = torch.from_numpy(feats).double()
    for step in parse_feat_norm(chain):
        if step == "row-l2":
            x = torch.nn.functional.normalize(x, dim=1)
            continue
        deviation = x[rows].std(0, correction=0)
        scale = torch.where(deviation < 1e-9, 0.0, 1 / deviation) if step == "standardize" else 1.0
        x = (x - x[rows].mean(0)) * scale
    return x
