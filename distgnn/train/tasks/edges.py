"""Classes or values of edges: pairs of vertices with labels, which may be edges of the graph.

Legend: m pairs of this rank, C classes.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional

from distgnn.config import TrainConfig
from distgnn.config.task import SPLITS, check_graph_for
from distgnn.errors import InputError
from distgnn.train.loss import OwnLoss
from distgnn.train.metrics import metric_of_rows
from distgnn.train.tasks.split_pairs import SplitPairs
from distgnn.train.tasks.task import Metrics, Predicted
from distgnn.train.tasks.values import loss_of_values, metrics_of_values


class EdgeTask:
    """A class, or a value, of each pair of a split. Described by `Task`."""

    pairs: SplitPairs
    name: str
    kind: str
    label_smoothing: float

    loss: OwnLoss | None

    def __init__(self, model: Any, config: TrainConfig):
        self.pairs, self.name, self.loss = SplitPairs(model), config.task, self._loss
        self.kind, self.label_smoothing = config.loss or "mse", config.label_smoothing
        self.metric: str = self.kind if config.task == "edge-regression" else "accuracy"

    def check(self, graph: Any, config: TrainConfig) -> None:
        check_graph_for(self.name, graph.info)
        classes = graph.info.get("num_edge_classes", 0)
        if config.metric == "rocauc" and classes != 2:
            raise InputError(f"metric rocauc needs two classes: the edges of this graph have {classes}")

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        found: Metrics = {}
        for split in SPLITS:
            if self.pairs.of(graph, split) is None:
                found[f"{split}_metric"] = None
                continue
            scores, labels = self.pairs.scores(graph, rows, split), self.pairs.labels(graph, split)
            if self.name == "edge":
                classes = SimpleNamespace(comm=graph.comm, multilabel=False)
                found[f"{split}_metric"] = metric_of_rows(classes, scores, labels, metric)
                found[f"{split}_accuracy"] = metric_of_rows(classes, scores, labels, "accuracy")
            else:
                found |= metrics_of_values(graph, scores, labels, metric, split)
        return found

    def predict(self, graph: Any, rows: torch.Tensor) -> Predicted:
        return self.pairs.predict(graph, rows)

    def _loss(self, graph: Any, rows: torch.Tensor) -> torch.Tensor:
        scores, labels = self.pairs.scores(graph, rows, "train"), self.pairs.labels(graph, "train")
        count = self.pairs.need(graph, "train")[0].num_pairs
        if self.name != "edge":
            return loss_of_values(scores, labels, self.kind, count)
        smoothing = self.label_smoothing
        return functional.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing) / max(count, 1)
