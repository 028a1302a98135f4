"""Passes in cluster batches: the steps of an epoch, those that are done of it, and what batches do not go with."""

import math
from typing import Any

import numpy as np
from torch import nn

from distgnn.config import TrainConfig
from distgnn.config.extras import part_of
from distgnn.config.together import check_together
from distgnn.errors import InputError
from distgnn.extras.batches.batches import Batches
from distgnn.extras.batches.extra import SUMS, BatchOptions
from distgnn.train.passes import Passes, Taken
from distgnn.train.users_model import sees_rows

BY_ARC = {"AttentionConv", "GINEConv", "RelGraphConv"}  # of distgnn.nn
EXTREMES = ("pool", "max", "min")
OTHERS = ("dgl.", "torch_geometric.")
ROWS = (
    "cluster batches have no rows of all ranks, which {} gets: take a model of distgnn.nn, or load the graph with "
    "plain_tensors=True"
)


class BatchPasses(Passes):
    """A run of which the first epochs, or all, are in batches."""

    def __init__(self, whole: Any, graph: Any, options: BatchOptions):
        super().__init__(whole, graph)
        self.options = options
        self.batches: Batches | None = None

    def _in_batches(self, epoch: int) -> bool:
        return self.options.batched_epochs is None or epoch < self.options.batched_epochs

    def num_steps(self, epoch: int) -> int:
        return self.options.cluster_batches if self._in_batches(epoch) else 1

    def first_step(self, epoch: int) -> int:
        batched = epoch if self.options.batched_epochs is None else min(epoch, self.options.batched_epochs)
        return batched * self.options.cluster_batches + epoch - batched

    def take(self, trainer: Any, epoch: int, keeps_logits: bool) -> Taken:
        if not self._in_batches(epoch):
            self.batches = None
            return super().take(trainer, epoch, keeps_logits)
        steps = self.num_steps(epoch)
        shares, norms = [], []
        for number, batch in enumerate(self._made().of_pass(epoch)):
            self.graph.step = self.first_step(epoch) + number
            name = f"epoch {epoch}, batch {number + 1} of {steps}"
            _, share, norm = trainer.step(self.tell(trainer.model, batch), name, False)
            shares.append(share)
            norms.append(norm)
        return Taken(None, math.fsum(shares) / steps, max(norms))

    def _made(self) -> Batches:
        if self.batches is None:
            self.batches = Batches(self.graph, self.options.cluster_batches)
        return self.batches

    def held(self) -> dict[str, np.ndarray]:
        return {} if self.batches is None else self.batches.state_dict()

    def load_held(self, rows: dict[str, np.ndarray], epochs_done: int) -> None:
        if rows and self._in_batches(epochs_done):
            self._made().load_state_dict(rows)


def passes_of(config: TrainConfig, model: nn.Module, whole: Any, graph: Any) -> BatchPasses | None:
    """Those of the settings; None without batches. Raises: InputError for what batches do not go with."""
    options = part_of(config, BatchOptions)
    if not options.cluster_batches:
        return None
    reuses = callable(getattr(model, "loss_rows", None))
    beside = {"exact": graph.exchanges_exactly, "label_reuse": reuses}
    check_together(cluster_batches=1, **beside)
    for module in model.modules():
        kinds = {kind.__name__ for kind in type(module).__mro__}
        extreme = getattr(module, "aggregator_type", "") in EXTREMES
        if extreme or kinds & BY_ARC or type(module).__module__.startswith(OTHERS):
            raise InputError(SUMS.format(by_arc=type(module).__name__))
    if sees_rows(model, graph):
        raise InputError(ROWS.format(type(model).__name__))
    return BatchPasses(whole, graph, options)
