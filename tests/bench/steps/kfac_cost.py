"""What K-FAC adds to an epoch: Adam and K-FAC in turns, on one graph in one process (or under mpiexec).

    distgnn partition facebook-pages --parts 1 --out parts/facebook-pages
    python tests/bench/steps/kfac_cost.py parts/facebook-pages [parts/cora ...] [--turns 7] [--every 10] [--model sage]
    mpiexec -n 2 python tests/bench/steps/kfac_cost.py parts/facebook-pages-2

A turn is `--every` epochs of each, so one of K-FAC's records factors and inverts them; which goes first changes from
turn to turn. The first turn does not count. Prints the median over turns of K-FAC / Adam, its range, and both medians
of an epoch; evaluation is not part of it. Not run by pytest.
"""

import argparse
import json
import statistics
from pathlib import Path

from mpi4py import MPI

import distgnn as dg  # before torch: it chooses how threads wait

# isort: split
import torch

from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import build_model
from distgnn.train import Trainer


def trainer_of(graph, options: argparse.Namespace, optimizer: str) -> Trainer:
    """A trainer whose K-FAC has passed its first steps, which record more often."""
    torch.manual_seed(0)
    model = build_model(ModelConfig(options.model, options.hidden), graph.num_feats, graph.num_classes)
    trainer = Trainer(model, graph, TrainConfig(optimizer=optimizer, kfac_every=options.every, log=None))
    trainer.train_epoch(0)
    if optimizer == "kfac":
        trainer.optimizer.records, trainer.optimizer.next_record = options.every, 1
    return trainer


def turns(graph, options: argparse.Namespace) -> list[dict[str, float]]:
    """Seconds of an epoch in each turn, the longest of all ranks."""
    trainers = {name: trainer_of(graph, options, name) for name in ("adam", "kfac")}
    found, epoch = [], 1
    for turn in range(options.turns + 1):
        seconds = {}
        for name in sorted(trainers, reverse=turn % 2 == 1):
            records = [trainers[name].train_epoch(epoch + step) for step in range(options.every)]
            seconds[name] = sum(record["seconds"] for record in records) / options.every
        epoch += options.every
        found.append(seconds)
    return found[1:]


def main() -> None:
    """Measure graph by graph."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--model", default="sage")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    everything = {}
    for parts in options.parts:
        found = everything[parts] = turns(dg.load(parts, dtype=options.dtype), options)
        ratios = [seconds["kfac"] / seconds["adam"] for seconds in found]
        adam, kfac = (statistics.median(seconds[name] for seconds in found) * 1e3 for name in ("adam", "kfac"))
        if MPI.COMM_WORLD.rank == 0:
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            line = f"{Path(parts).name:20} kfac / adam {statistics.median(ratios):.3f} ({spread})"
            print(f"{line}  adam {adam:.1f} ms  kfac {kfac:.1f} ms", flush=True)
    if options.out and MPI.COMM_WORLD.rank == 0:
        options.out.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
