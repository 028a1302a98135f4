"""Classes or values of edges: pairs of vertices with labels, which may be edges of the graph.

Legend: m pairs of this rank, C classes.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from distgnn.comm import sum_over_ranks
from distgnn.config import TrainConfig
from distgnn.config.task import VALUE_METRICS, check_graph_for
from distgnn.errors import InputError
from distgnn.graph.links.edge_pairs import EdgePairs
from distgnn.train.loss import OwnLoss
from distgnn.train.metrics import metric_of_rows
from distgnn.train.tasks.task import Metrics
from distgnn.train.tasks.values import error_of_values, loss_of_values

SPLITS = ("train", "valid", "test")


class SplitPairs:
    """The pairs of each split with the rows they need, asked for once. Collective: the first `of` each split."""

    def __init__(self, model: Any):
        self.model = model
        self._found: dict[str, tuple[EdgePairs, Any]] = {}

    def of(self, graph: Any, split: str) -> tuple[EdgePairs, Any] | None:
        """(pairs, RowLookup) of a split; None where the graph has none."""
        if f"{split}_edges" not in graph.info.get("edge_splits", {}):
            return None
        if split not in self._found:
            pairs = graph.edge_pairs(split)
            self._found[split] = pairs, graph.look_up(pairs.pairs)
        return self._found[split]

    def scores(self, graph: Any, rows: torch.Tensor, split: str) -> torch.Tensor:
        """Scores of a split's pairs. Collective: yes."""
        found = self.of(graph, split)
        if found is None:
            raise InputError(f"the graph has no {split} edges: nothing to score")
        scores: torch.Tensor = self.model.scores(found[1], rows)
        return scores


class EdgeTask:
    """A class, or a value, of each pair of a split. Described by `Task`."""

    loss: OwnLoss | None

    def __init__(self, model: Any, config: TrainConfig):
        self.pairs, self.name, self.loss = SplitPairs(model), config.task, self._loss
        self.kind = config.loss or "mse"
        self.metric = self.kind if config.task == "edge-regression" else "accuracy"

    def check(self, graph: Any, config: TrainConfig) -> None:
        check_graph_for(self.name, graph.info)
        classes = graph.info.get("num_edge_classes", 0)
        if config.metric == "rocauc" and classes != 2:
            raise InputError(f"metric rocauc needs two classes: the edges of this graph have {classes}")

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        found: Metrics = {}
        for split in SPLITS:
            pairs = self.pairs.of(graph, split)
            if pairs is None:
                found[f"{split}_metric"] = None
                continue
            scores, labels = self.pairs.scores(graph, rows, split), _labels(pairs[0])
            if self.name == "edge":
                classes = SimpleNamespace(comm=graph.comm, multilabel=False)
                found[f"{split}_metric"] = metric_of_rows(classes, scores, labels, metric)
                found[f"{split}_accuracy"] = metric_of_rows(classes, scores, labels, "accuracy")
            else:
                errors = {name: error_of_values(graph, scores, labels, name) for name in VALUE_METRICS}
                found[f"{split}_metric"] = errors[metric]
                found |= {f"{split}_{name}": error for name, error in errors.items()}
        return found

    def predict(self, graph: Any, rows: torch.Tensor) -> tuple[Any, torch.Tensor, int]:
        scores = self.pairs.scores(graph, rows, "test")
        pairs = graph.edge_pairs("test")
        return pairs.ids, scores, pairs.num_pairs

    def _loss(self, graph: Any, rows: torch.Tensor) -> torch.Tensor:
        scores, labels = self.pairs.scores(graph, rows, "train"), _labels(graph.edge_pairs("train"))
        if self.name != "edge":
            return loss_of_values(graph, scores, labels, self.kind)
        (count,) = sum_over_ranks(graph.comm, np.array([len(labels)]))
        return functional.cross_entropy(scores, labels, reduction="sum") / max(int(count), 1)


def _labels(pairs: EdgePairs) -> torch.Tensor:
    if pairs.labels is None:
        raise InputError("these edges have no labels")
    return pairs.labels
