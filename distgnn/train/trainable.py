"""What is looked at before training: a graph that allows it, and modules that would depend on the number of ranks."""

import warnings
from typing import Any

from torch import nn

from distgnn.config import TrainConfig
from distgnn.errors import InputError
from distgnn.interop.pyg.api import works_per_rank
from distgnn.train.tasks.task import Task


def check_trainable(graph: Any, config: TrainConfig, task: Task) -> None:
    """Raise InputError for a graph without features or what the task needs, or an impossible metric."""
    if graph.feats is None:
        raise InputError("the graph has no features: training needs at least one feature per vertex")
    task.check(graph, config)


def warn_of_modules_per_rank(model: nn.Module, graph: Any) -> None:
    """Warn, on rank 0 of several, of torch's own modules that work on one rank's rows only."""
    kinds = (nn.modules.batchnorm._BatchNorm, nn.Dropout)
    names = [
        name
        for name, module in model.named_modules()
        if (isinstance(module, kinds) and getattr(module, "p", True)) or works_per_rank(module)
    ]
    if names and graph.num_ranks > 1 and graph.rank == 0:
        warnings.warn(
            f"{', '.join(names)}: torch's own module works per rank, so results depend on the number of ranks; "
            "call distgnn.nn.distribute(model, graph) first",
            stacklevel=4,
        )
