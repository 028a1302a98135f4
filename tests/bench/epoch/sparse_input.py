"""An epoch with the input features kept sparse beside one with dense features, in turn: which is faster?

    python tests/bench/epoch/sparse_input.py parts/cora parts/coauthor-cs parts/facebook-pages parts/amazon-computers
    python tests/bench/epoch/sparse_input.py parts/cora --sweep 0.01,0.05,0.1,0.2,0.4 --width 1000

Forces both ways whatever the density; with `--sweep`, on random features of those densities in place of the graph's.
Prints one JSON line per graph, model and density. Not run by pytest.
"""

import argparse
import json
import statistics

import numpy as np
import scipy.sparse
import torch
from mpi4py import MPI

from distgnn.config import ModelConfig, TrainConfig, num_threads
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.loader import use_threads
from distgnn.nn import build_model
from distgnn.ops.dense import sparse_rows
from distgnn.partition import load_part
from distgnn.train import Trainer


def measure(local, name: str, rounds: int) -> dict:
    """Median seconds of an epoch, dense and sparse, taking turns."""
    seconds, trainers = {False: [], True: []}, {}
    for sparse in seconds:
        graph = DistGraph(local, MPI.COMM_SELF, sparse_feats=sparse)
        torch.manual_seed(0)
        network = build_model(ModelConfig(name, 256, 2), graph.num_feats, graph.num_classes)
        trainers[sparse] = Trainer(network, graph, TrainConfig())
    for epoch in range(rounds + 2):
        for sparse, trainer in trainers.items():
            seconds[sparse].append(trainer.train_epoch(epoch)["seconds"])
    dense, kept = (statistics.median(seconds[sparse][2:]) for sparse in (False, True))
    share = local.feats.nnz / (local.feats.shape[0] * local.feats.shape[1])
    shape = list(local.feats.shape)
    return {"model": name, "shape": shape, "nonzeros": round(share, 4), "dense_seconds": dense, "sparse_seconds": kept}


def main() -> None:
    """All graphs, densities and models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--models", default="sage,gcn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sweep", default="", help="densities of random features")
    parser.add_argument("--width", type=int, default=1000, help="of random features")
    options = parser.parse_args()
    use_threads(num_threads())
    sparse_rows.DENSE_ABOVE = 1.0
    random = np.random.default_rng(0)
    for parts in options.parts:
        for density in options.sweep.split(","):
            local = load_part(parts, 0)
            if density:
                size = local.num_owned, options.width
                local.feats = scipy.sparse.random(*size, float(density), "csr", np.float32, random)
            for name in options.models.split(","):
                print(json.dumps({"parts": parts} | measure(local, name, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
