"""Values of vertices: mean squared or absolute error.

Legend: O owned rows, T values.
"""

from typing import Any

import torch

from distgnn.config import TrainConfig
from distgnn.config.task import VALUE_METRICS, check_graph_for
from distgnn.errors import InputError
from distgnn.train.loss import OwnLoss
from distgnn.train.tasks.task import Metrics
from distgnn.train.tasks.values import error_of_values, loss_of_values

SPLITS = ("train", "valid", "test")


class RegressionTask:
    """Values `graph.node_values` [O, T] of each vertex; rows of NaN count nowhere. Described by `Task`."""

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
            errors = {name: error_of_values(graph, guess, truth, name) for name in VALUE_METRICS}
            found[f"{split}_metric"] = errors[metric]
            found |= {f"{split}_{name}": error for name, error in errors.items()}
        return found

    def predict(self, graph: Any, rows: torch.Tensor) -> tuple[Any, torch.Tensor, int]:
        return graph.owned_ids, rows[: graph.num_owned], graph.num_global_nodes

    def _loss(self, graph: Any, rows: torch.Tensor) -> torch.Tensor:
        chosen = _known(graph, "train")
        return loss_of_values(graph, rows[: graph.num_owned][chosen], graph.node_values[chosen], self.metric)


def _known(graph: Any, split: str) -> torch.Tensor:
    """Owned vertices of a split that have values, bool [O]."""
    mask = getattr(graph, f"{split}_mask")[: graph.num_owned]
    return mask & ~torch.isnan(graph.node_values).any(1)
