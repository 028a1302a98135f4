"""Losses: the sum over this rank's labelled training rows, divided by the count over all ranks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError
from distgnn.graph.global_values import is_global_mean
from distgnn.ops.rowwise.cross_entropy import summed_cross_entropy
from distgnn.rows import RowTensor, WholeTensor, local_of
from distgnn.train.users_model import check_width, seen_by_users

OwnLoss = Callable[[Any, torch.Tensor], torch.Tensor]  # (graph, logits) -> the loss of the whole graph, or a share


def share_of_loss(
    model: nn.Module, graph: Any, logits: torch.Tensor, own: OwnLoss | None, users: bool, label_smoothing: float
) -> tuple[torch.Tensor, float, torch.Tensor | None]:
    """The scalar whose backward pass gives this rank's share of the gradient, this rank's share of the loss, and the
    loss of the whole graph, where a user's function made it alike on all ranks. Collective: as `rank_loss` or `own` is.

    Args: users: `own` is a user's, who sees rows of all ranks where the graph has them; label_smoothing: without `own`.

    Notes: what `own` made with `graph.global_mean`, or of rows of all ranks, is the loss of the whole graph on every
        rank, and its backward pass already gives this rank's share: the loss counts once, not once per rank.
    """
    if own is None:
        of = "tasks" if graph.multilabel else "classes"
        check_width(type(model).__name__, logits, graph.num_classes, of, least=not graph.multilabel)
        loss = rank_loss(graph, logits, rows_of_loss(model, graph), label_smoothing)
        return loss, loss.item(), None
    loss = own(*(seen_by_users(graph, logits) if users else (graph, logits)))
    if isinstance(loss, RowTensor):
        raise InputError("the loss function gave rows of all ranks: take their .mean() or .sum()")
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
        raise InputError("the loss function gave no scalar with a gradient: it is to return one tensor of one number")
    if isinstance(loss, WholeTensor):  # alike on all ranks
        first, plain = graph.rank == 0, local_of(loss)
        return plain * float(first), plain.item() if first else 0.0, plain
    return loss, loss.item() / (graph.num_ranks if is_global_mean(loss, logits) else 1), None


def rank_loss(
    graph: Any, logits: torch.Tensor, rows: torch.Tensor | None = None, label_smoothing: float = 0.0
) -> torch.Tensor:
    """This rank's share of the loss; the sum over ranks is the loss of the whole graph. Collective: with `rows`.

    Args: logits: owned rows, [O, C]; rows: which training rows count in this step, bool [O]; None: all.
    Returns: cross entropy for classes, binary cross entropy (mean over rows and tasks) for multi-label graphs.
    Notes: a rank without training rows returns 0 that is still connected to `logits`, so that its backward pass makes
        the same exchanges as everyone's.
    """
    if rows is None:
        rows, count = graph.train_mask, graph.num_labelled("train")
    else:  # over all ranks; at least 1, so that a step without any has loss 0
        count = max(int(sum_over_ranks(graph.comm, np.array([int(rows.sum())]))[0]), 1)
    if graph.multilabel:
        chosen, labels = logits[rows], graph.labels[rows]
        total = F.binary_cross_entropy_with_logits(chosen, labels.to(chosen.dtype), reduction="sum")
        return total / (count * graph.num_classes)
    return summed_cross_entropy(graph, logits, graph.labels, rows, label_smoothing) / count


def rows_of_loss(model: nn.Module, graph: Any) -> torch.Tensor | None:
    """The training rows of a model's loss in this step, as its `loss_rows` says; others may be input. None: all."""
    choose: Callable[[Any], torch.Tensor] | None = getattr(model, "loss_rows", None)
    return None if choose is None else choose(graph)
