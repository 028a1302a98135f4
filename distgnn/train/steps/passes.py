"""Passes: what the steps of each epoch are on, over the stages of a run: the whole graph, or its cluster batches; and
the steps of a pass that are done.

An epoch is a pass: every vertex counts once, in one step on the whole graph or in the steps of its batches. Optimiser,
schedules and weights go on from stage to stage.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    """

    def __init__(self, config: TrainConfig, model: nn.Module, whole: Any, graph: Any):
        self._config, self._whole, self._graph = config, whole, graph
        self.stages: list[Stage] = config.stage_list(config.epochs)
        self._batches: Batches | None = None
        has_batches = any(stage.num_batches for stage in self.stages)
        self._changes = has_batches or whole is not graph
        if has_batches:
            _check_batches(model, graph)

    def stage(self, epoch: int) -> Stage:
        """The stage that an epoch is in; after the last epoch the last one."""
        for stage in self.stages:
            if epoch < stage.epochs:
                return stage
            epoch -= stage.epochs
        return self.stages[-1]

    def num_steps(self, epoch: int) -> int:
        return max(self.stage(epoch).num_batches, 1)

    def graphs(self, epoch: int, done: int = 0) -> Iterator[tuple[str, Any]]:
        """What each step of an epoch is on, after the `done` first ones, and its name in a phase; `graph.step` is set.
        Collective: yes."""
        stage, first, left = self.stage(epoch), 0, epoch
        for before in self.stages[:-1]:  # masks are drawn by the number of the step over all epochs
            first += min(left, before.epochs) * max(before.num_batches, 1)
            left = max(left - before.epochs, 0)
        first += left * max(self.stages[-1].num_batches, 1)
        if not stage.num_batches:
            self._batches = None
            self._graph.step = first
            yield f"epoch {epoch}", self._graph
            return
        for number, batch in enumerate(self._batches_of(stage).of_pass(epoch, done), done):
            self._graph.step = first + number
            yield f"epoch {epoch}, batch {number + 1} of {stage.num_batches}", batch

    def _batches_of(self, stage: Stage) -> Batches:
        if self._batches is None:
            self._batches = Batches(self._graph, stage.num_batches, self._config.strata, self._config.history)
        return self._batches

    def tell(self, model: nn.Module, graph: Any) -> Any:
        """Give the graph of a step to the modules that `distgnn.nn.distribute` gave the run's graph; returns it."""
        for module in model.modules() if self._changes else ():
            known = getattr(module, "graph", None)
            if isinstance(known, BatchGraph) or known in (self._whole, self._graph):
                module.graph = graph
        return graph

    def state_dict(self) -> dict[str, np.ndarray]:
        found = {} if self._batches is None else self._batches.state_dict()
        return {HELD + name: array for name, array in found.items()}

    def load_state_dict(self, state: dict[str, np.ndarray], epochs_done: int) -> None:
        stage = self.stage(epochs_done)
        mine = {name.removeprefix(HELD): array for name, array in state.items() if name.startswith(HELD)}
        if stage.num_batches and mine:
            self._batches_of(stage).load_state_dict(mine)


def _check_batches(model: nn.Module, graph: Any) -> None:
    """Raise InputError for what cluster batches do not go with."""
    update, reuses = getattr(graph, "update", "owners"), callable(getattr(model, "loss_rows", None))
    check_together(num_batches=1, update=update, exact=graph.exchanges_exactly, label_reuse=reuses)
    for module in model.modules():
        kinds = {kind.__name__ for kind in type(module).__mro__}
        extreme = getattr(module, "aggregator_type", "") in EXTREMES
        if extreme or kinds & BY_ARC or type(module).__module__.startswith(OTHERS):
            raise InputError(SUMS.format(by_arc=type(module).__name__))
    if sees_rows(model, graph):
        raise InputError(ROWS.format(type(model).__name__))


@dataclass
class BegunPass:
    """What the record of a pass is made of so far: a run that is asked to stop within a pass goes on from there.

    Args: shares: of the loss, this rank's, one for each step. norms: of the gradient. seconds: of earlier processes.
    """

    shares: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    def state(self, comm: Any) -> dict[str, Any]:
        """What a checkpoint keeps; empty where no step is done. Collective: yes."""
        if not self.shares:
            return {}
        elapsed = self.seconds + time.perf_counter() - self.started
        return {
            "shares": comm.allgather(self.shares),
            "norms": self.norms,
            "seconds": max(comm.allgather(elapsed)),
        }

    @classmethod
    def of(cls, state: dict[str, Any], comm: Any) -> "BegunPass":
        if not state:
            return cls()
        shares = [[float(share) for share in rank] for rank in state["shares"]]
        if len(shares) == comm.size:
            mine = shares[comm.rank]
        else:
            totals = [math.fsum(step) for step in zip(*shares, strict=True)]
            mine = totals if comm.rank == 0 else [0.0] * len(totals)
        return cls(mine, [float(norm) for norm in state["norms"]], float(state["seconds"]))
