"""Passes: what the steps of each epoch are on. In the core it is one step on the whole graph; extras have others.

An epoch is a pass: every vertex counts once. Optimiser, schedules and weights do not know of its steps.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from distgnn.config import TrainConfig
from distgnn.config.extras import attached


class Taken(NamedTuple):
    """What the steps of an epoch gave.

    Args: logits: of the last step if they are kept; share: this rank's, of the loss, the mean over steps; norm: the
        largest of the gradient.
    """

    logits: torch.Tensor | None
    share: float
    norm: float


class Passes:
    """The steps of a run. Args: whole: the graph that is evaluated on; graph: trained on."""

    def __init__(self, whole: Any, graph: Any):
        self.whole, self.graph = whole, graph
        self._told: Any = graph

    @classmethod
    def of(cls, config: TrainConfig, model: nn.Module, whole: Any, graph: Any) -> "Passes":
        """Those that the settings ask for. Raises: InputError for what they do not go with."""
        made = (make(config, model, whole, graph) for make in attached("passes"))
        return next((one for one in made if one is not None), None) or cls(whole, graph)

    def num_steps(self, epoch: int) -> int:
        return 1

    def first_step(self, epoch: int) -> int:
        """The number of an epoch's first step over all epochs, by which masks are drawn."""
        return epoch

    def take(self, trainer: Any, epoch: int, keeps_logits: bool) -> Taken:
        """The steps of an epoch. Collective: yes."""
        self.graph.step = self.first_step(epoch)
        return Taken(*trainer.step(self.tell(trainer.model, self.graph), f"epoch {epoch}", keeps_logits))

    def tell(self, model: nn.Module, graph: Any) -> Any:
        """Give the graph of a step to the modules that `distgnn.nn.distribute` gave the run's graph; returns it."""
        known = self.whole, self.graph, self._told
        for module in model.modules() if graph is not self._told or self.whole is not self.graph else ():
            if any(getattr(module, "graph", None) is one for one in known):
                module.graph = graph
        self._told = graph
        return graph

    def held(self) -> dict[str, np.ndarray]:
        """Rows of this rank that a checkpoint keeps."""
        return {}

    def load_held(self, rows: dict[str, np.ndarray], epochs_done: int) -> None:
        """Take over what `held` gave on the same cut. Collective: yes."""
