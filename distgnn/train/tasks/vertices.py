"""Tasks: what the trainer asks of one, and those on vertices: classes, the default, and values.

Legend: O owned rows, C classes, n rows of this rank, T values of each.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.config.task import SPLITS, VALUE_METRICS
from distgnn.train.loss import OwnLoss
from distgnn.train.metrics import evaluate
from distgnn.train.users_model import check_width

Metrics = dict[str, float | None]
Predicted = tuple[Any, torch.Tensor, int]  # ids of this rank's rows, the rows, rows over all ranks
ERRORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"mse": torch.square, "mae": torch.abs}


class Task:
    """A loss and metrics of a model's rows.

    Attributes:
        metric: by which the best epoch is found, where the settings name none.
        loss: of (graph, the model's rows), as the trainer's argument; None: the trainer's own cross entropy.
    """

    metric: str
    loss: OwnLoss | None = None

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        """`train_metric`, `valid_metric`, `test_metric`, and further ones by their names. Collective: yes."""
        raise NotImplementedError

    def predict(self, graph: Any, rows: torch.Tensor) -> Predicted:
        """What `distgnn predict` writes. Collective: yes."""
        return of_vertices(graph, rows)


class NodeTask(Task):
    """A class of each vertex, or several (multi-label)."""

    def __init__(self, multilabel: bool):
        self.metric = "rocauc" if multilabel else "accuracy"

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        return evaluate(graph, rows, metric)


class RegressionTask(Task):
    """Values of each vertex, mean squared or absolute error; rows of NaN count nowhere."""

    def __init__(self, kind: str):
        self.metric, self.loss = kind, self._loss

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        found: Metrics = {}
        for split in SPLITS:
            found |= metrics_of_values(graph, *_known(graph, rows, split), metric, split)
        return found

    def predict(self, graph: Any, rows: torch.Tensor) -> Predicted:
        ids, found, count = of_vertices(graph, rows)
        labels = graph.labels if graph.node_values is None else graph.node_values
        if labels is not None and found[:1].numel() == labels[:1].numel():
            found = found.reshape(len(found), *labels.shape[1:])  # a number of each vertex is [N] or [N, 1], as given
        return ids, found, count

    def _loss(self, graph: Any, rows: torch.Tensor) -> torch.Tensor:
        check_width("the model", rows, values_of(graph).shape[1], "values of each vertex")  # else torch repeats them
        guess, truth = _known(graph, rows, "train")
        (count,) = sum_over_ranks(graph.comm, np.array([truth.numel()]))
        return loss_of_values(guess, truth, self.metric, int(count))


def _known(graph: Any, rows: torch.Tensor, split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Guesses and truth [n, T] of the owned vertices of a split that have values."""
    values = values_of(graph)
    chosen = getattr(graph, f"{split}_mask")[: graph.num_owned] & ~torch.isnan(values).any(1)
    guess = rows[: graph.num_owned][chosen]
    return guess.reshape(len(guess), -1) if len(guess) else guess.reshape(0, values.shape[1]), values[chosen]


def values_of(graph: Any) -> torch.Tensor:
    """What a regression predicts [O, T]: values, or labels that were given as whole numbers; NaN for none."""
    values = graph.node_values
    if values is None:
        labels, names = graph.labels, graph.info.get("class_names")
        numbers = torch.tensor([float(name) for name in names])[labels.clamp(min=0)] if names else labels
        values = numbers.to(graph.weight_dtype).masked_fill(labels < 0, torch.nan)
    return values if values.dim() == 2 else values[:, None]


def of_vertices(graph: Any, rows: torch.Tensor) -> Predicted:
    return graph.owned_ids, rows[: graph.num_owned], graph.num_global_nodes


def loss_of_values(guess: torch.Tensor, truth: torch.Tensor, kind: str, count: int) -> torch.Tensor:
    """This rank's share of the mean error over all ranks' `count` values [n, T]."""
    return ERRORS[kind](guess - truth.to(guess.dtype)).sum() / max(count, 1)


def metrics_of_values(graph: Any, guess: torch.Tensor, truth: torch.Tensor, metric: str, split: str) -> Metrics:
    """Every mean error of a split's values, and `metric`, by their names in a record; None without values.

    Collective: yes.
    """
    means: Metrics = {}
    for kind in VALUE_METRICS:
        errors = ERRORS[kind](guess.double() - truth.double())
        total, count = sum_over_ranks(graph.comm, np.array([float(errors.sum()), float(errors.numel())]))
        means[kind] = float(total / count) if count else None
    return {f"{split}_metric": means[metric]} | {f"{split}_{kind}": mean for kind, mean in means.items()}
