"""Losses and metrics of values: squared and absolute errors, summed over ranks.

Legend: n rows of this rank, T values of each.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.config.task import VALUE_METRICS
from distgnn.train.tasks.task import Metrics

ERRORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"mse": torch.square, "mae": torch.abs}


def loss_of_values(guess: torch.Tensor, truth: torch.Tensor, kind: str, count: int) -> torch.Tensor:
    """This rank's share of the mean error over all ranks' `count` values [n, T]."""
    return ERRORS[kind](guess - truth.to(guess.dtype)).sum() / max(count, 1)


def metrics_of_values(graph: Any, guess: torch.Tensor, truth: torch.Tensor, metric: str, split: str) -> Metrics:
    """Every error of a split's values, and `metric`, by their names in a record. Collective: yes."""
    errors = {name: error_of_values(graph, guess, truth, name) for name in VALUE_METRICS}
    return {f"{split}_metric": errors[metric]} | {f"{split}_{name}": error for name, error in errors.items()}


def error_of_values(graph: Any, guess: torch.Tensor, truth: torch.Tensor, kind: str) -> float | None:
    """The mean error over all ranks' values; None without any. Collective: yes."""
    errors = ERRORS[kind](guess.double() - truth.double())
    total, count = sum_over_ranks(graph.comm, np.array([float(errors.sum()), float(errors.numel())]))
    return float(total / count) if count else None
