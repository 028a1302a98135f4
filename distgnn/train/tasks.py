"""What a run learns: loss, metrics and predictions of each task (`distgnn/config/task.py` lists them).

    loss of links = mean over training edges of log(1 + exp(-score)) + mean over negatives of log(1 + exp(score))

Negatives are drawn in each step; metrics of links are OGB's.

Legend: O owned rows, C classes, n rows of this rank, T values of each, m pairs of this rank, K negatives.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from distgnn.comm import sum_over_ranks
from distgnn.config import TrainConfig
from distgnn.config.task import HITS, SPLITS, VALUE_METRICS
from distgnn.errors import InputError
from distgnn.graph.edge_pairs import EdgePairs, negative_edges
from distgnn.train.metrics import OwnLoss, evaluate, link_metrics, metric_of_rows
from distgnn.train.users_model import check_width

NAMED = ("mrr", "rocauc", *HITS)
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


class _PairTask(Task):
    """The pairs of each split with the rows they need, asked for once (collective), and a model's scores of them."""

    def __init__(self, model: Any, config: TrainConfig):
        self._model, self._config, self.loss = model, config, self._loss
        self._found: dict[str, tuple[EdgePairs, Any]] = {}

    def predict(self, graph: Any, rows: torch.Tensor) -> Predicted:
        pairs, scores = self._scores(graph, rows, "test")
        return pairs.ids, scores, pairs.num_pairs

    def _of(self, graph: Any, split: str) -> tuple[EdgePairs, Any] | None:
        """(pairs, RowLookup of their ends) of a split; None where the graph has none."""
        if f"{split}_edges" not in graph.info.get("edge_splits", {}):
            return None
        if split not in self._found:
            pairs = graph.edge_pairs(split)
            self._found[split] = pairs, graph.look_up(pairs.pairs)
        return self._found[split]

    def _scores(self, graph: Any, rows: torch.Tensor, split: str) -> tuple[EdgePairs, torch.Tensor]:
        """Pairs of a split and their scores. Collective: yes. Raises: InputError where the graph has none."""
        found = self._of(graph, split)
        if found is None:
            raise InputError(f"the graph has no {split} edges: nothing to score")
        return found[0], self._model.scores(found[1], rows)

    def _loss(self, graph: Any, rows: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class EdgeTask(_PairTask):
    """A class, or a value, of each pair of a split, which may be an edge of the graph."""

    def __init__(self, model: Any, config: TrainConfig):
        super().__init__(model, config)
        self._kind = config.loss or "mse"
        self.metric: str = self._kind if config.task == "edge-regression" else "accuracy"

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        found: Metrics = {}
        for split in SPLITS:
            if self._of(graph, split) is None:
                found[f"{split}_metric"] = None
                continue
            pairs, scores = self._scores(graph, rows, split)
            if self._config.task == "edge":
                classes = SimpleNamespace(comm=graph.comm, multilabel=False)
                found[f"{split}_metric"] = metric_of_rows(classes, scores, _labels(pairs), metric)
                found[f"{split}_accuracy"] = metric_of_rows(classes, scores, _labels(pairs), "accuracy")
            else:
                found |= metrics_of_values(graph, scores, _labels(pairs), metric, split)
        return found

    def _loss(self, graph: Any, rows: torch.Tensor) -> torch.Tensor:
        pairs, scores = self._scores(graph, rows, "train")
        if self._config.task != "edge":
            return loss_of_values(scores, _labels(pairs), self._kind, pairs.num_pairs)
        smoothing = self._config.label_smoothing
        total = functional.cross_entropy(scores, _labels(pairs), reduction="sum", label_smoothing=smoothing)
        return total / max(pairs.num_pairs, 1)


class LinkTask(_PairTask):
    """Whether two vertices are joined."""

    metric: str = "mrr"

    def __init__(self, model: Any, config: TrainConfig):
        super().__init__(model, config)
        self._negatives: dict[str, Any] = {}

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        """Metrics of valid and test edges that have negatives; training edges have none to be ranked among."""
        found: Metrics = {"train_metric": None}
        for split in ("valid", "test"):
            values = self._measure(graph, rows, split)
            found[f"{split}_metric"] = values.get(metric)
            found |= {f"{split}_{name}": values[name] for name in NAMED if name in values}
        return found

    def _loss(self, graph: Any, rows: torch.Tensor) -> torch.Tensor:
        pairs, positive = self._scores(graph, rows, "train")
        number = self._config.num_negatives
        drawn = graph.look_up(negative_edges(graph, pairs, number, self._config.negatives))
        negative = self._model.scores(drawn, rows)
        count = max(pairs.num_pairs, 1)
        return functional.softplus(-positive).sum() / count + functional.softplus(negative).sum() / (count * number)

    def _measure(self, graph: Any, rows: torch.Tensor, split: str) -> dict[str, float]:
        found, shapes = self._of(graph, split), graph.info.get("edge_splits", {})
        beside = f"{split}_negative_targets" in shapes
        if found is None or not (beside or f"{split}_negatives" in shapes):
            return {}
        if split not in self._negatives:
            negatives: Any = found[0].negatives
            if beside:  # each pair's, [k, 2], one pair after the other
                targets: Any = found[0].negative_targets
                sources = np.repeat(found[0].pairs[:, 0], targets.shape[1])
                negatives = np.stack([sources, targets.reshape(-1)], axis=1)
            self._negatives[split] = graph.look_up(negatives)
        scores = self._scores(graph, rows, split)[1], self._model.scores(self._negatives[split], rows)
        positive, negative = (one.detach().double().numpy() for one in scores)
        return link_metrics(graph.comm, positive, negative, beside)


def _labels(pairs: EdgePairs) -> Any:
    """Labels of a split's pairs. Raises: InputError where they have none."""
    if pairs.labels is None:
        raise InputError("these edges have no labels")
    return pairs.labels


def task_for(config: TrainConfig, model: nn.Module, graph: Any) -> Task:
    """The task that the settings name. Raises: InputError for a model without the scores of pairs that it needs."""
    if config.task == "node":
        return NodeTask(graph.multilabel)
    if config.task == "regression":
        return RegressionTask(config.loss or "mse")
    if not callable(getattr(model, "scores", None)):
        raise InputError(
            f"task {config.task} needs a model with scores of pairs: dg.nn.PairPredictor(encoder, decoder)"
        )
    return LinkTask(model, config) if config.task == "link" else EdgeTask(model, config)
