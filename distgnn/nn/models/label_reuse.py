"""Label reuse: training labels as further input columns, hidden at random where the loss is.

Legend: O the model's rows, C classes.
"""

from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional

from distgnn import ops
from distgnn.config import ModelConfig
from distgnn.errors import InputError
from distgnn.nn.models.stacks import Described
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView

COLUMN = "training_labels"
SITE = (1 << 16) - 1  # the last of the dropout sites of a call: no model has as many


class LabelReuse(nn.Module):
    """A model whose input is [features | training labels]; a vertex whose loss counts never sees its own label.

    In each training step every training vertex shows its label with probability `rate`, by a draw that belongs to its
    global id: the same for any number of ranks. The loss is over the others. In evaluation all are shown.

    Args:
        model: takes (graph, rows [O, in_feats + C]).
        rate: share of training labels that are shown.

    Shape: [O, in_feats] to logits [O, C].

    Notes:
        The input changes in every step, so the aggregation of the features is not kept between epochs. The metric of
        the training split says nothing, because its labels are input; the other splits' are fair.

    Source: Wang et al., Bag of Tricks for Node Classification, 2021 (label usage); Shi et al., UniMP, IJCAI'21.

    Example:
        >>> inner = dg.nn.GCN(graph.num_feats + graph.num_classes, 8, graph.num_classes)
        >>> model = dg.nn.LabelReuse(inner, rate=0.5)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    model: nn.Module
    rate: float

    def __init__(self, model: nn.Module, rate: float):
        super().__init__()
        self.model, self.rate = model, rate

    def described(self) -> tuple[ModelConfig, dict[str, int], dict[str, float]]:
        """As of the model, whose input has the labels too. Raises: InputError for one that is not ours."""
        if not isinstance(self.model, Described):
            raise InputError(f"{type(self.model).__name__} is a class of your own: write it with PyG's layers")
        config, sizes, numbers = self.model.described()
        widths = {"num_feats": sizes["num_feats"] - sizes["num_classes"]}
        return replace(config, label_reuse=self.rate), sizes | widths, numbers

    def to_pyg(self) -> nn.Module:
        """As of our other models."""
        return Described.to_pyg(self)  # type: ignore[arg-type]

    @opaque
    def forward(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        labels = training_labels(graph)
        shown = labels * self.shown(graph).to(labels.dtype) if self.training else labels
        return self.model(graph, torch.cat([feats, shown], 1))

    def shown(self, graph: GraphView) -> torch.Tensor:
        """Which rows would show a label in this training step, bool [O, 1]."""
        return ops.dropout(graph, torch.ones(graph.num_nodes(), 1), 1 - self.rate, SITE) > 0

    def loss_rows(self, graph: GraphView) -> torch.Tensor:
        """The training rows whose labels are hidden in this training step, bool [O]."""
        return graph.train_mask & ~self.shown(graph)[:, 0]


def training_labels(graph: GraphView) -> torch.Tensor:
    """Labels of training vertices as columns of 0 and 1, zeros for all others: [O, C]. Kept in `graph.ndata`.

    Collective: the first time (with update on copies, halo copies get theirs by one broadcast, as features do).
    """
    if COLUMN not in graph.ndata:
        mask = graph.train_mask[: graph.num_owned]
        columns = torch.zeros(graph.num_owned, graph.num_classes, dtype=graph.dtype)
        chosen = graph.labels[: graph.num_owned][mask]
        hot = chosen if graph.multilabel else functional.one_hot(chosen, graph.num_classes)
        columns[mask] = hot.to(graph.dtype)
        graph.ndata[COLUMN] = graph.rows_from_owned(columns)
    return graph.ndata[COLUMN]
