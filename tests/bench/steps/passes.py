"""What the prototypes of steps share: a 3-layer GraphSAGE-256 on one graph, and passes until a validation accuracy.

A pass is one forward and backward pass over the whole graph; evaluation is not counted. Run each script on one rank
(adasum.py: under mpiexec), for example

    distgnn partition amazon-photo --parts 1 --out parts/amazon-photo
    python tests/bench/steps/muon.py parts/amazon-photo --target 0.94
"""

import argparse
from collections.abc import Callable, Iterator

import distgnn as dg  # before torch: it chooses how threads wait

# isort: split
import torch

from distgnn.config import ModelConfig
from distgnn.nn import build_model
from distgnn.train.loss import rank_loss
from distgnn.train.metrics import evaluate


def options_of(description: str, **more: float) -> argparse.Namespace:
    """Options of a prototype; `more`: its own numbers, with defaults."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--target", type=float, default=0.94)
    parser.add_argument("--most", type=int, default=60, help="passes")
    parser.add_argument("--seed", type=int, default=0)
    for name, default in more.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def model_and_graph(options: argparse.Namespace, **settings):
    """The model of the documentation and its graph; `settings` of `dg.load`."""
    graph = dg.load(options.parts, seed=options.seed, **settings)
    torch.manual_seed(options.seed)
    return build_model(ModelConfig(), graph.num_feats, graph.num_classes), graph


def gradients(model, graph, step: int) -> float:
    """The gradient of step `step` in `.grad`; returns this rank's share of the loss."""
    graph.step = step
    model.train()
    model.zero_grad()
    loss = rank_loss(graph, model(graph, graph.feats))
    loss.backward()
    return loss.item()


def race(name: str, model, graph, options: argparse.Namespace, steps: Callable[[], Iterator[int]]) -> None:
    """Make steps, each of which gives the passes done so far, until the target or the limit; print the way there."""
    best, reached, shown = 0.0, None, []
    for passes in steps():
        model.eval()
        with torch.no_grad():
            found = evaluate(graph, model(graph, graph.feats), "accuracy")
        best = max(best, found["valid_metric"])
        shown.append((passes, best))
        if best >= options.target:
            reached = passes
        if reached or passes >= options.most:
            break
    if graph.rank == 0:
        way = " ".join(f"{passes}:{100 * value:.1f}" for passes, value in shown[4::5])
        print(
            f"{name} {options.parts} seed {options.seed}: {reached} passes to {options.target}, best {best:.4f}; {way}"
        )
