"""Metrics over the whole graph: counts are summed over ranks; scores for ROC-AUC are gathered to rank 0.

All values lie in [0, 1]; a split without labelled vertices has no metric (None).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from distgnn.comm import gather_arrays, sum_over_ranks
from distgnn.config import TrainConfig
from distgnn.config.task import LINK_METRICS, METRICS_OF, SPLITS, VALUE_METRICS
from distgnn.errors import InputError, RunError, on_all_ranks
from distgnn.train.users_model import seen_by_users

RECORD_NAMES = {"epoch", "loss", "seconds", "grad_norm", "sent_bytes", "exchange_waits", "wait_seconds"}
RECORD_NAMES |= {"bytes_between_nodes", "metric", "best_epoch", "epochs", "versions", "ranks", "threads", "seed"}
ROUNDING = 2.0**-17  # 64 units in the last place of float32: what sums of some layers in another order differ by
OF_TASKS = tuple(f"{split}_{name}" for split in ("valid", "test") for name in (*VALUE_METRICS, *LINK_METRICS))


OwnMetric = Callable[[Any, torch.Tensor], float]  # (graph, logits) -> a number of the whole graph


def check_own(config: TrainConfig, own: Mapping[str, OwnMetric]) -> None:
    """Check the settings, whose `metric` may be one of `own`. Raises: InputError."""
    replace(config, metric=None if config.metric in own else config.metric).check()
    for name, function in own.items():
        ours = METRICS_OF[config.task] + (() if config.task == "node" else OF_TASKS)
        taken = name in ours or name in RECORD_NAMES or name.endswith(("_metric", "_accuracy"))
        if taken or not callable(function):
            raise InputError(f"metrics: {name!r} is {'a name of our own' if taken else 'no function'}")


def own_metrics(graph: Any, logits: torch.Tensor, own: Mapping[str, OwnMetric]) -> dict[str, float | None]:
    """Values of own metrics, those of rank 0 on every rank, so that all agree on the best epoch. Collective: yes."""
    with torch.no_grad():
        seen = seen_by_users(graph, logits)
        mine = {name: float(function(*seen)) for name, function in own.items()}
    values: dict[str, float | None] = graph.comm.bcast(mine, root=0)
    for name, value in values.items():
        if value is None or not math.isfinite(value):
            raise on_all_ranks(RunError(f"metric {name} is {value}: expected a finite number of the whole graph"))
    return values


def evaluate(graph: Any, logits: torch.Tensor, metric: str) -> dict[str, float | None]:
    """The metric of each split from owned `logits` [O, C]: {"train_metric": …, "valid_metric": …, "test_metric": …};
    multi-class graphs also get "…_accuracy". Collective: yes."""
    values = {f"{split}_metric": measure(graph, logits, metric, split) for split in SPLITS}
    if graph.multilabel:
        return values
    accuracies = values.values() if metric == "accuracy" else (measure(graph, logits, "accuracy", s) for s in SPLITS)
    return values | {f"{split}_accuracy": value for split, value in zip(SPLITS, accuracies, strict=True)}


def measure(graph: Any, logits: torch.Tensor, metric: str, split: str) -> float | None:
    mask = getattr(graph, f"{split}_mask")
    return metric_of_rows(graph, logits[mask], graph.labels[mask], metric)


def metric_of_rows(graph: Any, logits: torch.Tensor, labels: torch.Tensor, metric: str) -> float | None:
    """One metric of these rows and those of all other ranks; `graph` has comm and multilabel. Collective: yes."""
    if logits.shape[1] == 1 and getattr(graph, "num_classes", 2) > 1 and not graph.multilabel:
        # From a user's loss: the logit of the second of two classes.
        logits = torch.cat([torch.zeros_like(logits), logits], 1)
    return _METRICS[metric](graph, logits, labels)


def _accuracy(graph: Any, logits: torch.Tensor, labels: torch.Tensor) -> float | None:
    """Right rows / rows; of a multi-label graph right entries / entries."""
    guess = (logits > 0).to(labels.dtype) if graph.multilabel else logits.argmax(1)
    right, count = sum_over_ranks(graph.comm, np.array([int((guess == labels).sum()), labels.numel()]))
    return float(right / count) if count else None


def _f1(graph: Any, logits: torch.Tensor, labels: torch.Tensor) -> float | None:
    """Micro F1; equals accuracy for single-label graphs."""
    if not graph.multilabel:
        return _accuracy(graph, logits, labels)
    guess, truth = logits > 0, labels > 0
    counts = [int((guess & truth).sum()), int(guess.sum()), int(truth.sum()), len(labels)]
    both, guessed, true, rows = sum_over_ranks(graph.comm, np.array(counts))
    if rows == 0:
        return None
    return float(2 * both / (guessed + true)) if guessed + true else 1.0


def _rocauc(graph: Any, logits: torch.Tensor, labels: torch.Tensor) -> float | None:
    """Mean over tasks of the area under the ROC curve; tasks with one kind of label only are left out, as in OGB."""
    scores = logits if graph.multilabel else logits[:, 1:2] - logits[:, 0:1]
    truth = labels if graph.multilabel else labels[:, None]
    every, right = (gather_arrays(graph.comm, one) for one in (scores.double().numpy(), truth.numpy() > 0))
    areas = None
    if every is not None and right is not None:
        columns = zip(np.concatenate(every).T, np.concatenate(right).T, strict=False)  # outputs beyond the tasks
        areas = [area for area in (_area(*column) for column in columns) if area is not None]
    return graph.comm.bcast(float(np.mean(areas)) if areas else None, root=0)


def tie_width(scores: np.ndarray, size: float) -> np.ndarray:
    """How far from each score others may be that count as equal to it: sums in another order differ by as much.

    Args: size: root mean square of all scores; one near 0 may be a difference of large ones.
    """
    found: np.ndarray = ROUNDING * np.maximum(np.abs(np.nan_to_num(scores, posinf=0.0, neginf=0.0)), size)
    return found


def _area(scores: np.ndarray, truth: np.ndarray) -> float | None:
    """P(score of a positive > score of a negative), ties counting half."""
    negatives, positives = np.sort(scores[~truth]), scores[truth]
    if len(negatives) == 0 or len(positives) == 0:
        return None
    finite = scores[np.isfinite(scores)]
    width = tie_width(positives, float(np.sqrt(np.mean(finite**2))) if len(finite) else 0.0)
    below = np.searchsorted(negatives, positives - width, "left")
    below = below + np.searchsorted(negatives, positives + width, "right")
    return float(below.sum() / 2 / len(positives) / len(negatives))


_METRICS = {"accuracy": _accuracy, "f1": _f1, "rocauc": _rocauc}
