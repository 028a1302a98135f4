"""Passes: what the steps of each epoch are on, over the stages of a run: the whole graph, or its cluster batches.

An epoch is a pass: every vertex counts once, in one step on the whole graph or in the steps of its batches. Optimiser,
schedules and weights go on from stage to stage.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import nn

from distgnn.config import TrainConfig
from distgnn.config.batch import Stage
from distgnn.config.together import SUMS, check_together
from distgnn.errors import InputError
from distgnn.graph.batches import Batches, BatchGraph
from distgnn.train.users_model import sees_rows

BY_ARC = {"AttentionConv", "GINEConv", "RelGraphConv"}  # of distgnn.nn
EXTREMES = ("pool", "max", "min")
OTHERS = ("dgl.", "torch_geometric.")
ROWS = (
    "cluster batches have no rows of all ranks, which {} gets: take a model of distgnn.nn, or load the graph with "
    "plain_tensors=True"
)
HELD = "batch."  # before the names of held rows in a checkpoint


class Passes:
    """The stages of a run.

    Args: model: looked at where there are cluster batches; whole: the graph that is evaluated on; graph: trained on.
    Raises: InputError for a graph, a model or settings that do not go with cluster batches.
    """

    config: TrainConfig
    whole: Any
    graph: Any

    def __init__(self, config: TrainConfig, model: nn.Module, whole: Any, graph: Any):
        self.config, self.whole, self.graph = config, whole, graph
        self.stages: list[Stage] = config.stage_list(config.epochs)
        self._batches: Batches | None = None
        has_batches = any(stage.num_batches for stage in self.stages)
        self._changes = has_batches or whole is not graph
        if has_batches:
            check_batches(model, graph)
            if sees_rows(model, graph):
                raise InputError(ROWS.format(type(model).__name__))

    def stage(self, epoch: int) -> Stage:
        """The stage that an epoch is in; after the last epoch the last one."""
        for stage in self.stages:
            if epoch < stage.epochs:
                return stage
            epoch -= stage.epochs
        return self.stages[-1]

    def first_step(self, epoch: int) -> int:
        """How many steps the epochs before `epoch` have: the number of its first step, of which masks are drawn."""
        steps = 0
        for stage in self.stages[:-1]:
            steps += min(epoch, stage.epochs) * max(stage.num_batches, 1)
            epoch = max(epoch - stage.epochs, 0)
        return steps + epoch * max(self.stages[-1].num_batches, 1)

    def num_steps(self, epoch: int) -> int:
        """Steps of an epoch."""
        return max(self.stage(epoch).num_batches, 1)

    def graphs(self, epoch: int, done: int = 0) -> Iterator[tuple[str, Any]]:
        """What each step of an epoch is on, after the `done` first ones, and its name in a phase; `graph.step` is set.

        Collective: yes.
        """
        stage, first = self.stage(epoch), self.first_step(epoch)
        if not stage.num_batches:
            self._batches = None
            self.graph.step = first
            yield f"epoch {epoch}", self.graph
            return
        for number, batch in enumerate(self._batches_of(stage).of_pass(epoch, done), done):
            self.graph.step = first + number
            yield f"epoch {epoch}, batch {number + 1} of {stage.num_batches}", batch

    def _batches_of(self, stage: Stage) -> Batches:
        if self._batches is None:
            self._batches = Batches(self.graph, stage.num_batches, self.config.strata, self.config.history)
        return self._batches

    def tell(self, model: nn.Module, graph: Any) -> None:
        """Give the graph of a step to the modules that `distgnn.nn.distribute` gave the run's graph."""
        if not self._changes:
            return
        for module in model.modules():
            known = getattr(module, "graph", None)
            if isinstance(known, BatchGraph) or known in (self.whole, self.graph):
                module.graph = graph

    def state_dict(self) -> dict[str, np.ndarray]:
        """Held rows of this rank, for a checkpoint between steps."""
        found = {} if self._batches is None else self._batches.state_dict()
        return {HELD + name: array for name, array in found.items()}

    def load_state_dict(self, state: dict[str, np.ndarray], epochs_done: int) -> None:
        """Take up what `state_dict` gave on this rank after so many epochs. Collective: yes."""
        stage = self.stage(epochs_done)
        mine = {name.removeprefix(HELD): array for name, array in state.items() if name.startswith(HELD)}
        if stage.num_batches and mine:
            self._batches_of(stage).load_state_dict(mine)


def check_batches(model: nn.Module, graph: Any) -> None:
    """Raise InputError for what cluster batches do not go with."""
    update, reuses = getattr(graph, "update", "owners"), callable(getattr(model, "loss_rows", None))
    check_together(num_batches=1, update=update, exact=graph.exchanges_exactly, label_reuse=reuses)
    if graph.local.cluster_places is None:
        raise InputError("this partition has no vertex clusters for batches: make it with distgnn partition --clusters")
    for module in model.modules():
        kinds = {kind.__name__ for kind in type(module).__mro__}
        extreme = getattr(module, "aggregator_type", "") in EXTREMES
        if extreme or kinds & BY_ARC or type(module).__module__.startswith(OTHERS):
            raise InputError(SUMS.format(by_arc=type(module).__name__))
