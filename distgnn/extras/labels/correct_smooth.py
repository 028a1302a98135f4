"""Correct and Smooth: spread the errors and then the labels of training vertices over the whole graph.

Legend: O owned rows, C classes. S = D_in^-1/2 A D_out^-1/2 over the whole graph.

    correct   E <- (1 - alpha) E_0 + alpha S E, E_0 the error of training vertices;  Z = Y + scale E
    smooth    Z <- (1 - alpha) Z_0 + alpha S Z, Z_0 = Z with the true labels at training vertices

Source: Huang et al., Combining Label Propagation and Simple Models Out-performs GNNs, ICLR'21; where the paper leaves
a choice (clamping, the cap of the scale) as `torch_geometric.nn.CorrectAndSmooth`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from distgnn import ops
from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError, on_all_ranks
from distgnn.extras.labels.extra import CorrectSmoothConfig

MOST_SCALE = 1000.0


@torch.no_grad()
def correct_and_smooth(graph: Any, logits: torch.Tensor, config: CorrectSmoothConfig | None = None) -> torch.Tensor:
    """Scores of every class, [O, C], from logits [O, C] and the training labels; the largest is the guess.

    Collective: yes. Exact on any number of ranks: one exchange of C columns per step.

    Args: graph: DistGraph with labels, update on owners; logits: owned rows.

    Raises: InputError, on every rank, for a graph whose vertices have several labels, or none to learn from.
    """
    config = config or CorrectSmoothConfig()
    config.check()
    if graph.labels is None or graph.multilabel or graph.num_labelled("train") == 0:
        raise on_all_ranks(InputError("Correct and Smooth needs training vertices with one label each: there are none"))
    mask = graph.train_mask
    truth = functional.one_hot(graph.labels[mask], graph.num_classes).to(graph.dtype)
    scores = corrected(graph, logits.to(graph.dtype).softmax(1), truth, config)
    scores[mask] = truth
    return propagated(graph, scores, config.smoothing_steps, config.smoothing_alpha, lambda rows: rows.clamp_(0, 1))


def corrected(graph: Any, scores: torch.Tensor, truth: torch.Tensor, config: CorrectSmoothConfig) -> torch.Tensor:
    """Scores [O, C] plus the spread error of training vertices, whose true rows are `truth`. Collective: yes."""
    mask, steps, alpha = graph.train_mask, config.correction_steps, config.correction_alpha
    error = torch.zeros_like(scores)
    error[mask] = truth - scores[mask]
    if config.scale is not None:  # training vertices keep their error
        known = mask.nonzero()[:, 0]
        own = error[known]
        spread = propagated(graph, error, steps, alpha, lambda rows: rows.index_copy_(0, known, own))
        return scores + config.scale * spread
    spread = propagated(graph, error, steps, alpha, lambda rows: rows.clamp_(-1, 1))
    total = sum_over_ranks(graph.comm, np.array([error.abs().sum(dtype=torch.float64).item()]))[0]
    scale = (float(total) / graph.num_labelled("train")) / spread.abs().sum(1, keepdim=True)
    scale[torch.isinf(scale) | (scale > MOST_SCALE)] = 1.0
    return scores + scale * spread


def propagated(
    graph: Any, rows: torch.Tensor, steps: int, alpha: float, after_each: Callable[..., Any]
) -> torch.Tensor:
    """`steps` times rows <- after_each((1 - alpha) first rows + alpha S rows). Collective: yes."""
    first = (1 - alpha) * rows
    source, target = graph.degree_scale("out", -0.5), graph.degree_scale("in", -0.5)
    for _ in range(steps):
        rows = after_each(first + alpha * ops.spmm(graph, rows, None, source, target))
    return rows
