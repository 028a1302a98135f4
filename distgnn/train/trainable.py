"""What is looked at before training: a graph that allows it, and modules that would depend on the number of ranks."""

import inspect
import warnings
from typing import Any

from torch import nn

from distgnn.config import TrainConfig
from distgnn.errors import InputError

GRAPH_NAMES = ("graph", "g", "dist_graph")


def check_trainable(graph: Any, config: TrainConfig) -> None:
    """Raise InputError for a graph without features, labels or training rows, or an impossible metric."""
    if graph.feats is None:
        raise InputError("the graph has no features: training needs at least one feature per vertex")
    if graph.labels is None:
        raise InputError("the graph has no labels: training needs labels")
    if graph.num_labelled("train") == 0:
        raise InputError("no training vertex has a label: give a train split with labelled vertices")
    if config.metric == "rocauc" and not graph.multilabel and graph.num_classes != 2:
        raise InputError(
            f"metric rocauc needs two classes or several tasks: this graph has {graph.num_classes} classes"
        )


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
    kinds = (nn.modules.batchnorm._BatchNorm, nn.Dropout)
    names = [name for name, module in model.named_modules() if isinstance(module, kinds) and getattr(module, "p", True)]
    if names and graph.num_ranks > 1 and graph.rank == 0:
        warnings.warn(
            f"{', '.join(names)}: torch's own module works per rank, so results depend on the number of ranks; "
            "call distgnn.nn.distribute(model, graph) first",
            stacklevel=4,
        )
