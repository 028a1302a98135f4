"""Task: what the trainer asks of a task. Classes of vertices, the default, are `NodeTask`.

Legend: O owned rows, C classes, T values.
"""

from typing import Any, Protocol

import torch

from distgnn.config import TrainConfig
from distgnn.config.task import ONE_LABEL_EACH
from distgnn.errors import InputError
from distgnn.train.loss import OwnLoss
from distgnn.train.metrics import evaluate

Metrics = dict[str, float | None]
Predicted = tuple[Any, torch.Tensor, int]  # ids of this rank's rows, the rows, rows over all ranks


class Task(Protocol):
    """A loss and metrics of a model's rows.

    Attributes:
        metric: by which the best epoch is found, where the settings name none.
        loss: of (graph, the model's rows), as the trainer's argument; None: the trainer's own cross entropy.
    """

    metric: str
    loss: OwnLoss | None

    def check(self, graph: Any, config: TrainConfig) -> None:
        """Raise InputError for a graph without what the task predicts."""

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        """`train_metric`, `valid_metric`, `test_metric`, and further ones by their names. Collective: yes."""

    def predict(self, graph: Any, rows: torch.Tensor) -> Predicted:
        """What `distgnn predict` writes. Collective: yes."""


class NodeTask:
    """A class of each vertex, or several (multi-label)."""

    loss: OwnLoss | None = None

    def __init__(self, multilabel: bool):
        self.metric = "rocauc" if multilabel else "accuracy"

    def check(self, graph: Any, config: TrainConfig) -> None:
        if graph.labels is None:
            raise InputError("the graph has no labels: training needs labels")
        if graph.num_labelled("train") == 0:
            raise InputError("no training vertex has a label: give a train split with labelled vertices")
        if config.label_smoothing and graph.multilabel:
            raise InputError(ONE_LABEL_EACH)
        if config.metric == "rocauc" and not graph.multilabel and graph.num_classes != 2:
            raise InputError(
                f"metric rocauc needs two classes or several tasks: this graph has {graph.num_classes} classes"
            )

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        return evaluate(graph, rows, metric)

    def predict(self, graph: Any, rows: torch.Tensor) -> Predicted:
        return of_vertices(graph, rows)


def of_vertices(graph: Any, rows: torch.Tensor) -> Predicted:
    """The rows of all vertices as predictions."""
    return graph.owned_ids, rows[: graph.num_owned], graph.num_global_nodes
