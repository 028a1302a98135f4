"""Losses and metrics of values: squared and absolute errors, summed over ranks.

Legend: n rows of this rank, T values of each.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks

ERRORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"mse": torch.square, "mae": torch.abs}


def loss_of_values(graph: Any, guess: torch.Tensor, truth: torch.Tensor, kind: str) -> torch.Tensor:
    """This rank's share of the mean error over all ranks' values [n, T]. Collective: yes."""
    errors = ERRORS[kind](guess - truth.to(guess.dtype))
    (count,) = sum_over_ranks(graph.comm, np.array([errors.numel()]))
    return errors.sum() / max(int(count), 1)


def error_of_values(graph: Any, guess: torch.Tensor, truth: torch.Tensor, kind: str) -> float | None:
    """The mean error over all ranks' values; None without any. Collective: yes."""
    errors = ERRORS[kind](guess.double() - truth.double())
    total, count = sum_over_ranks(graph.comm, np.array([float(errors.sum()), float(errors.numel())]))
    return float(total / count) if count else None
