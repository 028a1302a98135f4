"""An epoch with the input features kept sparse beside one with dense features, in turn: which is faster?

    python tests/bench/epoch/sparse_input.py parts/cora parts/coauthor-cs parts/facebook-pages parts/amazon-computers

Forces both ways whatever the density. Prints one JSON line per graph and model. Not run by pytest.
"""

import argparse
import json
import statistics

import torch

from distgnn.config import ModelConfig, TrainConfig
from distgnn.loader import load
from distgnn.nn import build_model
from distgnn.ops import sparse_rows
from distgnn.train import Trainer


def main() -> None:
    """All graphs and models, both ways in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--models", default="sage,gcn")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    sparse_rows.DENSE_ABOVE = 1.0
    for parts in options.parts:
        for name in options.models.split(","):
            trainers = {}
            for sparse in (False, True):
                graph = load(parts, sparse_feats=sparse)
                torch.manual_seed(0)
                network = build_model(ModelConfig(name, 256, 2), graph.num_feats, graph.num_classes)
                trainers[sparse] = Trainer(network, graph, TrainConfig())
            share = len(graph.feats.values) / (graph.feats.shape[0] * graph.feats.shape[1])
            seconds = {False: [], True: []}
            for epoch in range(options.rounds + 2):
                for sparse, trainer in trainers.items():
                    seconds[sparse].append(trainer.train_epoch(epoch)["seconds"])
            dense, kept = (statistics.median(seconds[sparse][2:]) for sparse in (False, True))
            row = {"parts": parts, "model": name, "shape": graph.feats.shape, "nonzeros": round(share, 4)}
            print(json.dumps(row | {"dense_seconds": dense, "sparse_seconds": kept}), flush=True)


if __name__ == "__main__":
    main()
