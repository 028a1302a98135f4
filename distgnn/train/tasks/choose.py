"""The task that a run's settings name."""

from typing import Any

from torch import nn

from distgnn.config import TrainConfig
from distgnn.errors import InputError
from distgnn.train.tasks.edges import EdgeTask
from distgnn.train.tasks.links import LinkTask
from distgnn.train.tasks.regression import RegressionTask
from distgnn.train.tasks.task import NodeTask, Task


def task_for(config: TrainConfig, model: nn.Module, graph: Any) -> Task:
    """The task that the settings name, for this model.

    Raises: InputError for a model without scores of pairs.
    """
    if config.task == "node":
        return NodeTask(graph.multilabel)
    if config.task == "regression":
        return RegressionTask(config.loss or "mse")
    if not callable(getattr(model, "scores", None)):
        raise InputError(
            f"task {config.task} needs a model with scores of pairs: dg.nn.PairPredictor(encoder, decoder)"
        )
    return LinkTask(model, config) if config.task == "link" else EdgeTask(model, config)
