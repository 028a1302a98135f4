"""Losses and accuracies of bfloat16 rows beside float32, over seeds: is the difference within the noise of float32?

    python tests/bench/epoch/bfloat16.py parts/facebook-pages parts/amazon-computers parts/arxiv --seeds 0,1,2

Noise is what float32 itself spreads over seeds (of weights and masks): the sample standard deviation of its runs. The
two dtypes run with the same seeds, weights and masks, so beside the difference of their means (in units of that noise;
within noise: at most 1) stands the largest difference of two runs of one seed. A loss is the mean over the last ten
epochs, since dropout makes each epoch's another; accuracies are those after the last epoch.

Prints one JSON line per graph, model, dtype and seed, and at the end a table. Not run by pytest.
"""

import argparse
import json
import statistics

import torch

from distgnn.config import ModelConfig, TrainConfig, num_threads
from distgnn.graph.loader import load, use_threads
from distgnn.nn import build_model
from distgnn.train import Trainer

LAST = 10
SHOWN = ("loss", "valid_accuracy", "test_accuracy")
HEAD = """| graph, model | | float32 | bfloat16 | means differ by, in noise | one seed's by at most |
|---|---|---|---|---|---|"""


def run(parts: str, config: ModelConfig, dtype: str, epochs: int, seed: int) -> dict:
    """Train once."""
    graph = load(parts, dtype=dtype, seed=seed, sparse_feats=config.takes_sparse_feats)
    torch.manual_seed(seed)
    network = build_model(config, graph.num_feats, graph.num_classes)
    trainer = Trainer(network, graph, TrainConfig(seed=seed))
    losses = [trainer.train_epoch(epoch)["loss"] for epoch in range(epochs)]
    found = trainer.evaluate() | {"loss": statistics.fmean(losses[-LAST:])}
    return {name: found[name] for name in SHOWN}


def table_row(where: str, name: str, plain: list[float], short: list[float]) -> str:
    """Means ± spreads of both dtypes, and their differences in units of float32's spread."""
    noise = statistics.stdev(plain)
    apart = statistics.fmean(short) - statistics.fmean(plain)
    most = max(abs(b - a) for a, b in zip(plain, short, strict=True))
    means = [f"{statistics.fmean(runs):.4g} ± {statistics.stdev(runs):.2g}" for runs in (plain, short)]
    return f"| {where} | {name} | {means[0]} | {means[1]} | {apart / noise:+.2f} | {most / noise:.2f} |"


def main() -> None:
    """All graphs, models, seeds and dtypes, in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--models", default="sage,gcn,gat")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--hidden-feats", type=int, default=128)
    options = parser.parse_args()
    use_threads(num_threads())
    lines = [HEAD]
    for parts in options.parts:
        for model in options.models.split(","):
            config = ModelConfig(model, options.hidden_feats, 2)
            runs = {"float32": [], "bfloat16": []}
            for seed in map(int, options.seeds.split(",")):
                for dtype, found in runs.items():
                    found.append(run(parts, config, dtype, options.epochs, seed))
                    where = {"parts": parts, "model": model, "dtype": dtype, "seed": seed}
                    print(json.dumps(where | found[-1]), flush=True)
            for name in SHOWN:
                columns = ([one[name] for one in found] for found in runs.values())
                lines.append(table_row(f"{parts}, {model}", name, *columns))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
