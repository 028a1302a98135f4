"""Values of vertices: mean squared or absolute error.

Legend: O owned rows, T values.
"""

from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.config import TrainConfig
from distgnn.config.task import SPLITS, check_graph_for
from distgnn.errors import InputError
from distgnn.train.loss import OwnLoss
from distgnn.train.tasks.task import Metrics, Predicted, of_vertices
from distgnn.train.tasks.values import loss_of_values, metrics_of_values
from distgnn.train.users_model import check_width


class RegressionTask:
    """Values `graph.node_values` [O, T] of each vertex; rows of NaN count nowhere. Described by `Task`."""

    metric: str

    loss: OwnLoss | None

    def __init__(self, kind: str):
        self.metric, self.loss = kind, self._loss

    def check(self, graph: Any, config: TrainConfig) -> None:
        check_graph_for("regression", graph.info)
        if graph.info["train"] == 0:
            raise InputError("there are no training vertices: give a train split")

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        found: Metrics = {}
        for split in SPLITS:
            chosen = _known(graph, split)
            guess, truth = rows[: graph.num_owned][chosen], graph.node_values[chosen]
            found |= metrics_of_values(graph, guess, truth, metric, split)
        return found

    def predict(self, graph: Any, rows: torch.Tensor) -> Predicted:
        return of_vertices(graph, rows)

    def _loss(self, graph: Any, rows: torch.Tensor) -> torch.Tensor:
        check_width("the model", rows, graph.node_values.shape[1], "values of each vertex")  # else torch repeats them
        chosen = _known(graph, "train")
        guess, truth = rows[: graph.num_owned][chosen], graph.node_values[chosen]
        (count,) = sum_over_ranks(graph.comm, np.array([truth.numel()]))
        return loss_of_values(guess, truth, self.metric, int(count))


def _known(graph: Any, split: str) -> torch.Tensor:
    """Owned vertices of a split that have values, bool [O]."""
    mask = getattr(graph, f"{split}_mask")[: graph.num_owned]
    return mask & ~torch.isnan(graph.node_values).any(1)
