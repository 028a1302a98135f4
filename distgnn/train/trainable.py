"""What is looked at before training: a graph that allows it, and modules that would depend on the number of ranks."""

import inspect
import warnings
from typing import Any

from torch import nn

from distgnn.config import TrainConfig
from distgnn.config.option import options_of
from distgnn.config.task import check_graph_for, check_training_graph
from distgnn.config.together import check_together
from distgnn.errors import InputError
from distgnn.graph.task_rows import rows_of_task
from distgnn.train.users_model import sees_rows

GRAPH_NAMES = ("graph", "g", "dist_graph")


def check_trainable(model: nn.Module, graph: Any, config: TrainConfig, own_loss: Any) -> None:
    """Raise InputError for a graph without what the task needs, and for a model or settings that cannot be trained."""
    if own_loss is not None and config.label_smoothing:
        raise InputError(
            "label_smoothing is for the Trainer's own loss: leave it out, and smooth in your loss function"
        )
    # The metric may be the user's own: `check_own` has looked at it.
    check_together(**options_of(config) | options_of(graph.schedule) | {"metric": None, "graph": graph.info})
    info = rows_of_task(graph).info
    check_graph_for(config.task, info)
    check_training_graph(config, info)
    norm = graph.feat_norm
    if config.inductive and norm is not None and norm.mean is not None and not norm.inductive:
        raise InputError(
            f"inductive training, and the statistics of feat_norm {norm.name} are of all vertices: load the graph with "
            "inductive=True"
        )
    check_forward(model)


def check_forward(model: nn.Module) -> None:
    """Raise InputError for a `forward` that names the graph as its second argument: the trainer gives it first."""
    try:
        names = list(inspect.signature(model.forward).parameters)[:2]
    except (TypeError, ValueError):  # made by something that tells no names
        return
    if len(names) == 2 and names[1] in GRAPH_NAMES and names[0] not in GRAPH_NAMES:
        kind = type(model).__name__
        raise InputError(
            f"the Trainer calls model(graph, feats), and {kind}.forward takes ({', '.join(names)}): swap the two"
        )


def warn_of_modules_per_rank(model: nn.Module, graph: Any) -> None:
    """Warn, on rank 0 of several, of torch's own modules that work on one rank's rows only."""
    if sees_rows(model, graph):
        return
    kinds = (nn.modules.batchnorm._BatchNorm, nn.Dropout)
    names = [
        name
        for name, module in model.named_modules()
        if (isinstance(module, kinds) and getattr(module, "p", True))
        or type(module).__module__.startswith("torch_geometric.nn.norm.")
    ]
    if names and graph.num_ranks > 1 and graph.rank == 0:
        warnings.warn(
            f"{', '.join(names)}: torch's own module works per rank, so results depend on the number of ranks; "
            "call distgnn.nn.distribute(model, graph) first",
            stacklevel=4,
        )
