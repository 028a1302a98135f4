"""Link prediction: binary cross entropy of training edges and negatives drawn in each step; OGB's metrics.

    loss = mean over training edges of log(1 + exp(-score)) + mean over negatives of log(1 + exp(score))

Legend: m pairs of this rank, K negatives.
"""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from distgnn.config import TrainConfig
from distgnn.config.task import HITS, check_graph_for
from distgnn.graph.links.negatives import negative_edges
from distgnn.train.loss import OwnLoss
from distgnn.train.tasks.ranking import link_metrics
from distgnn.train.tasks.split_pairs import SplitPairs
from distgnn.train.tasks.task import Metrics, Predicted

NAMED = ("mrr", "rocauc", *HITS)


class LinkTask:
    """Whether two vertices are joined. Described by `Task`."""

    model: Any
    pairs: SplitPairs
    num_negatives: int
    kind: str

    metric = "mrr"
    loss: OwnLoss | None

    def __init__(self, model: Any, config: TrainConfig):
        self.model, self.pairs, self.loss = model, SplitPairs(model), self._loss
        self.num_negatives, self.kind = config.num_negatives, config.negatives
        self._negatives: dict[str, Any] = {}

    def check(self, graph: Any, config: TrainConfig) -> None:
        check_graph_for("link", graph.info)

    def evaluate(self, graph: Any, rows: torch.Tensor, metric: str) -> Metrics:
        """Metrics of valid and test edges that have negatives; training edges have none to be ranked among."""
        found: Metrics = {"train_metric": None}
        for split in ("valid", "test"):
            values = self._measure(graph, rows, split)
            found[f"{split}_metric"] = values.get(metric)
            found |= {f"{split}_{name}": values[name] for name in NAMED if name in values}
        return found

    def predict(self, graph: Any, rows: torch.Tensor) -> Predicted:
        return self.pairs.predict(graph, rows)

    def _loss(self, graph: Any, rows: torch.Tensor) -> torch.Tensor:
        positive = self.pairs.scores(graph, rows, "train")
        pairs, _ = self.pairs.need(graph, "train")
        drawn = graph.look_up(negative_edges(graph, pairs, self.num_negatives, self.kind))
        negative = self.model.scores(drawn, rows)
        count = max(pairs.num_pairs, 1)
        return (
            functional.softplus(-positive).sum() / count
            + functional.softplus(negative).sum() / (count * self.num_negatives)
        )  # fmt: skip

    def _measure(self, graph: Any, rows: torch.Tensor, split: str) -> dict[str, float]:
        found = self.pairs.of(graph, split)
        shapes = graph.info.get("edge_splits", {})
        beside = f"{split}_negative_targets" in shapes
        if found is None or not (beside or f"{split}_negatives" in shapes):
            return {}
        if split not in self._negatives:
            self._negatives[split] = graph.look_up(_negatives_of(found[0], beside))
        positive = self.pairs.scores(graph, rows, split)
        negative = self.model.scores(self._negatives[split], rows)
        return link_metrics(graph.comm, _numbers(positive), _numbers(negative), beside)


def _negatives_of(pairs: Any, beside: bool) -> np.ndarray:
    """Negatives to be scored, [k, 2]; those beside each pair one pair after the other."""
    if not beside:
        found: np.ndarray = pairs.negatives
        return found
    sources = np.repeat(pairs.pairs[:, 0], pairs.negative_targets.shape[1])
    return np.stack([sources, pairs.negative_targets.reshape(-1)], axis=1)


def _numbers(scores: torch.Tensor) -> np.ndarray:
    return scores.detach().double().numpy()
