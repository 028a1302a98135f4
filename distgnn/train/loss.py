"""Losses: the sum over this rank's labelled training rows, divided by the count over all ranks."""

import torch
from torch.nn import functional as F


def rank_loss(graph, logits: torch.Tensor) -> torch.Tensor:
    """This rank's share of the loss; the sum over ranks is the loss of the whole graph.

    Args:
        logits: owned rows, [O, C].

    Returns:
        Scalar. Cross entropy for classes, binary cross entropy (mean over rows and tasks) for multi-label graphs.

    Notes:
        A rank without training rows returns 0 that is still connected to `logits`, so that its backward pass
        makes the same exchanges as everyone's.
    """
    rows = graph.train_mask
    chosen, labels = logits[rows], graph.labels[rows]
    if graph.multilabel:
        total = F.binary_cross_entropy_with_logits(chosen, labels.to(chosen.dtype), reduction="sum")
        return total / (graph.num_labelled("train") * graph.num_classes)
    total = F.cross_entropy(chosen, labels, reduction="sum") if len(chosen) else (logits * 0).sum()
    return total / graph.num_labelled("train")
