"""Label reuse: training labels as further input columns, hidden at random where the loss is.

Legend: O the model's rows, C classes.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.nn import functional

from distgnn import ops
from distgnn.config import ModelConfig
from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.function import GraphView, opaque

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
        >>> from distgnn.extras.labels.label_reuse import LabelReuse
        >>> inner = dg.nn.GCN(graph.num_feats + graph.num_classes, 8, graph.num_classes)
        >>> model = LabelReuse(inner, rate=0.5)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    model: nn.Module
    rate: float

    def __init__(self, model: nn.Module, rate: float):
        super().__init__()
        self.model, self.rate = model, rate

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


def around(config: ModelConfig, num_classes: int) -> tuple[int, Callable[[nn.Module], nn.Module]] | None:
    """Columns that a model's input has more, and what stands around it; None without label reuse."""
    rate: float = config.label_reuse  # type: ignore[attr-defined]
    return (num_classes, partial(LabelReuse, rate=rate)) if rate else None


def training_labels(graph: GraphView) -> torch.Tensor:
    """Labels of training vertices as columns of 0 and 1, zeros for all others: [O, C]. Kept in `graph.ndata`.

    Collective: the first time (with update on copies, halo copies get theirs by one broadcast, as features do).

    Raises: InputError, on every rank, for a graph without any.
    """
    if COLUMN not in graph.ndata:
        if graph.labels is None or graph.num_labelled("train") == 0:
            says = "this model needs training labels of the graph: give labels and a train mask"
            raise on_all_ranks(InputError(says))
        mask = graph.train_mask[: graph.num_owned]
        columns = torch.zeros(graph.num_owned, graph.num_classes, dtype=graph.dtype)
        chosen = graph.labels[: graph.num_owned][mask]
        hot = chosen if graph.multilabel else functional.one_hot(chosen, graph.num_classes)
        columns[mask] = hot.to(graph.dtype)
        graph.ndata[COLUMN] = graph.rows_from_owned(columns)
    return graph.ndata[COLUMN]
