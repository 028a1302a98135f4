"""Where the time of an epoch goes: seconds in each kernel and torch function, beside the epoch's own.

    python tests/bench/epoch/where.py parts/rmat --model gat --dtype bfloat16 --norm none

Seconds per epoch (mean over the epochs after two to warm up) of the functions that take most, each without what it
calls in this table. One rank. Not run by pytest.
"""

import argparse
import cProfile
import pstats
import statistics
from pathlib import Path

from distgnn import kernels  # before torch, whose idle threads else keep the cores busy

import torch  # isort: skip

from distgnn.config import ModelConfig, TrainConfig, num_threads
from distgnn.graph.loader import load, use_threads
from distgnn.nn import build_model
from distgnn.system.sizes import peak_rss_bytes
from distgnn.train import Trainer


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--model", default="gat")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--norm", default="none")
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    use_threads(num_threads())
    config = ModelConfig(options.model, num_layers=options.num_layers, norm=options.norm)
    graph = load(options.parts, dtype=options.dtype, sparse_feats=config.takes_sparse_feats)
    torch.manual_seed(0)
    trainer = Trainer(build_model(config, graph.num_feats, graph.num_classes), graph, TrainConfig())
    for epoch in range(2):
        trainer.train_epoch(epoch)
    profile, seconds = cProfile.Profile(), []
    for epoch in range(2, 2 + options.epochs):
        profile.enable()
        seconds.append(trainer.train_epoch(epoch)["seconds"])
        profile.disable()
    where = f"{options.parts}, {options.model}, {options.dtype}, norm {options.norm}"
    print(f"{where}: epochs {statistics.median(seconds):.3f} s, peak {peak_rss_bytes() / 1e9:.2f} GB")
    spent: dict[str, list[float]] = {}
    for (file, _, name), (_, calls, own, whole, _) in pstats.Stats(profile).stats.items():
        inside = "kernels" in Path(file).parts
        if inside and not hasattr(kernels, name):  # what a kernel is made of
            continue
        key = name if not inside else f"kernels.{name}"
        one = spent.setdefault(key, [0, 0.0])
        one[0] += calls
        one[1] += whole if inside else own
    for name, (calls, total) in sorted(spent.items(), key=lambda item: -item[1][1])[:16]:
        print(f"    {total / options.epochs:7.3f} s  {calls / options.epochs:6.1f} calls  {name}")


if __name__ == "__main__":
    main()
