"""Losses and metrics over the whole graph: counts are summed over ranks; scores for ROC-AUC are gathered to rank 0.

All values lie in [0, 1]; a split without labelled vertices has no metric (None). Metrics of links are OGB's.

Legend: m scores of this rank's positives, k of its negatives; K negatives for each positive.

| | |
|---|---|
| rank of a positive | 1 + negatives above it + half of those equal to it |
| mrr | mean of 1 / rank |
| hits@K, negatives for each positive | share of positives with rank <= K |
| hits@K, negatives for all | share of positives above the K-th highest negative; 1 for fewer than K negatives |
| rocauc | share of (positive, negative) in the right order, ties counting half |

Scores within 2^-17 of their size count as equal: `tie_width`. Ranks add in another order than one process does, so
that scores which are equal in exact arithmetic differ in their last bits. Each positive has a band of its own, so no
pair of equal scores falls to both sides of a border, as rounded scores would. OGB's values come out where no two scores
are that close. In bfloat16 equal scores may differ by more than that.

Source: ogb.linkproppred.Evaluator (Hu et al., Open Graph Benchmark, 2020). With negatives for all, mrr ranks a positive
among all of them, as Li et al. do (Evaluating Graph Neural Networks for Link Prediction, 2023).

Losses: the sum over this rank's labelled training rows, divided by the count over all ranks.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from distgnn.comm import gather_arrays, sum_over_ranks
from distgnn.config import TrainConfig
from distgnn.config.task import HITS, LINK_METRICS, METRICS_OF, SPLITS, VALUE_METRICS
from distgnn.errors import InputError, RunError, on_all_ranks
from distgnn.graph.global_values import is_global_mean
from distgnn.ops.rowwise.cross_entropy import summed_cross_entropy
from distgnn.rows import RowTensor, WholeTensor, local_of
from distgnn.train.users_model import check_width, seen_by_users

OwnLoss = Callable[[Any, torch.Tensor], torch.Tensor]  # (graph, logits) -> the loss of the whole graph, or a share


def share_of_loss(
    model: nn.Module, graph: Any, logits: torch.Tensor, own: OwnLoss | None, users: bool, label_smoothing: float
) -> tuple[torch.Tensor, float, torch.Tensor | None]:
    """The scalar whose backward pass gives this rank's share of the gradient, this rank's share of the loss, and the
    loss of the whole graph, where a user's function made it alike on all ranks. Collective: as `rank_loss` or `own` is.

    Args: users: `own` is a user's, who sees rows of all ranks where the graph has them; label_smoothing: without `own`.

    Notes: what `own` made with `graph.global_mean`, or of rows of all ranks, is the loss of the whole graph on every
        rank, and its backward pass already gives this rank's share: the loss counts once, not once per rank.
    """
    if own is None:
        of = "tasks" if graph.multilabel else "classes"
        check_width(type(model).__name__, logits, graph.num_classes, of, least=not graph.multilabel)
        loss = rank_loss(graph, logits, rows_of_loss(model, graph), label_smoothing)
        return loss, loss.item(), None
    loss = own(*(seen_by_users(graph, logits) if users else (graph, logits)))
    if isinstance(loss, RowTensor):
        raise InputError("the loss function gave rows of all ranks: take their .mean() or .sum()")
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
        raise InputError("the loss function gave no scalar with a gradient: it is to return one tensor of one number")
    if isinstance(loss, WholeTensor):  # alike on all ranks
        first, plain = graph.rank == 0, local_of(loss)
        return plain * float(first), plain.item() if first else 0.0, plain
    return loss, loss.item() / (graph.num_ranks if is_global_mean(loss, logits) else 1), None


def rank_loss(
    graph: Any, logits: torch.Tensor, rows: torch.Tensor | None = None, label_smoothing: float = 0.0
) -> torch.Tensor:
    """This rank's share of the loss; the sum over ranks is the loss of the whole graph. Collective: with `rows`.

    Args: logits: owned rows, [O, C]; rows: which training rows count in this step, bool [O]; None: all.
    Returns: cross entropy for classes, binary cross entropy (mean over rows and tasks) for multi-label graphs.
    Notes: a rank without training rows returns 0 that is still connected to `logits`, so that its backward pass makes
        the same exchanges as everyone's.
    """
    if rows is None:
        rows, count = graph.train_mask, graph.num_labelled("train")
    else:  # over all ranks; at least 1, so that a step without any has loss 0
        count = max(int(sum_over_ranks(graph.comm, np.array([int(rows.sum())]))[0]), 1)
    if graph.multilabel:
        chosen, labels = logits[rows], graph.labels[rows]
        total = F.binary_cross_entropy_with_logits(chosen, labels.to(chosen.dtype), reduction="sum")
        return total / (count * graph.num_classes)
    return summed_cross_entropy(graph, logits, graph.labels, rows, label_smoothing) / count


def rows_of_loss(model: nn.Module, graph: Any) -> torch.Tensor | None:
    """The training rows of a model's loss in this step, as its `loss_rows` says; others may be input. None: all."""
    choose: Callable[[Any], torch.Tensor] | None = getattr(model, "loss_rows", None)
    return None if choose is None else choose(graph)


RECORD_NAMES = {"epoch", "loss", "seconds", "grad_norm", "sent_bytes", "exchange_waits", "wait_seconds"}
RECORD_NAMES |= {"metric", "best_epoch", "epochs", "versions", "ranks", "threads", "seed"}
ROUNDING = 2.0**-17  # 64 units in the last place of float32: what sums of some layers in another order differ by
KS = [(name, int(name.partition("@")[2])) for name in HITS]
LARGEST = max(most for _, most in KS)
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
    """Values of own metrics, rank 0's on every rank, so that all agree on the best epoch. Collective: yes."""
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
    """One metric of these rows and all other ranks' rows; `graph` has comm and multilabel. Collective: yes."""
    logits = logits[:, None] if logits.dim() == 1 else logits
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


def link_metrics(comm: Any, positive: np.ndarray, negative: np.ndarray, beside: bool) -> dict[str, float]:
    """Every metric, by name; empty where there are no positives or no negatives.

    Collective: yes; scores of positives come to every rank, negatives are counted where they are.

    Args: beside: the negatives [m * K] belong to a positive each, one positive after the other; else for all.
    """
    positives = _from_all(comm, positive)
    (count,) = sum_over_ranks(comm, np.array([len(negative)]))
    if len(positives) == 0 or count == 0:
        return {}
    scores = np.concatenate([positive, negative])
    finite = scores[np.isfinite(scores)]
    squares, numbers = sum_over_ranks(comm, np.array([float(np.dot(finite, finite)), float(len(finite))]))
    size = float(np.sqrt(squares / max(numbers, 1.0)))
    # For each positive the negatives of all ranks above it, those equal to it counting half
    ordered, width = np.sort(negative), tie_width(positives, size)
    below = np.searchsorted(ordered, positives - width, "left")
    not_above = np.searchsorted(ordered, positives + width, "right")
    above = sum_over_ranks(comm, 2 * len(ordered) - below - not_above) / 2
    found = {"rocauc": float(1 - np.mean(above) / count)}
    if beside:
        width, table = tie_width(positive, size), negative.reshape(len(positive), -1 if len(positive) else 0)
        higher, not_below = (table > (positive + width)[:, None]).sum(1), (table >= (positive - width)[:, None]).sum(1)
        ranks = _from_all(comm, 1 + (higher + not_below) / 2)
        return found | {"mrr": float(np.mean(1 / ranks))} | {name: float(np.mean(ranks <= most)) for name, most in KS}
    best = np.sort(np.concatenate(comm.allgather(np.sort(negative)[-LARGEST:])))
    above_it = best + tie_width(best, size)
    hits = {name: 1.0 if count < most else float(np.mean(positives > above_it[-most])) for name, most in KS}
    return found | {"mrr": float(np.mean(1 / (1 + above)))} | hits


def _from_all(comm: Any, values: np.ndarray) -> np.ndarray:
    """The values of all ranks, in the order of ranks. Collective: yes."""
    return np.concatenate(gather_arrays(comm, values, root=None) or [])
