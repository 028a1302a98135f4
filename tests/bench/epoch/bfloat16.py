"""Losses and accuracies of bfloat16 rows beside float32, over seeds: is the difference within the noise of seeds?

    python tests/bench/epoch/bfloat16.py parts/cora parts/facebook-pages parts/amazon-computers --seeds 0,1,2

Prints one JSON line per graph, model, dtype and seed, and at the end means and standard deviations. Not run by pytest.
"""

import argparse
import json
import statistics

import torch

from distgnn.config import ModelConfig, TrainConfig
from distgnn.loader import load
from distgnn.nn import build_model
from distgnn.train import Trainer

SHOWN = ("final_loss", "test_accuracy", "valid_accuracy")


def run(parts: str, config: ModelConfig, dtype: str, epochs: int, seed: int) -> dict:
    """Train once."""
    graph = load(parts, dtype=dtype, seed=seed, sparse_feats=config.takes_sparse_feats)
    torch.manual_seed(seed)
    network = build_model(config, graph.num_feats, graph.num_classes)
    summary = Trainer(network, graph, TrainConfig(epochs=epochs, eval_every=5, seed=seed)).fit().summary
    return {name: summary[name] for name in SHOWN}


def main() -> None:
    """All graphs, models, seeds and dtypes, in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--models", default="sage,gcn,gat")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--hidden-feats", type=int, default=128)
    options = parser.parse_args()
    found: dict[tuple, list[dict]] = {}
    for parts in options.parts:
        for model in options.models.split(","):
            config = ModelConfig(model, options.hidden_feats, 2)
            for seed in map(int, options.seeds.split(",")):
                for dtype in ("float32", "bfloat16"):
                    one = run(parts, config, dtype, options.epochs, seed)
                    found.setdefault((parts, model, dtype), []).append(one)
                    where = {"parts": parts, "model": model, "dtype": dtype, "seed": seed}
                    print(json.dumps(where | one), flush=True)
    for (parts, model, dtype), runs in found.items():
        columns = {name: [one[name] for one in runs] for name in SHOWN}
        text = ", ".join(f"{n} {statistics.fmean(v):.4f} ± {statistics.pstdev(v):.4f}" for n, v in columns.items())
        print(f"{parts} {model} {dtype}: {text}", flush=True)


if __name__ == "__main__":
    main()
