"""What was done to input features: steps on rows and columns, with their statistics.

    row-l2        x_i / |x_i|                   rows of zeros stay
    center        x_ij - mu_j
    standardize   (x_ij - mu_j) / sigma_j       columns that do not vary become 0

Steps are done one after the other, in float64. Nothing of the graph and no MPI is behind it: exported models use it.

Legend: I columns.
"""

from dataclasses import dataclass
from typing import Any

import torch

from distgnn.config.run import OF_COLUMNS

ROUNDING = 1e-14  # of squares: a column or row whose remainder is smaller than this is constant but for rounding


@dataclass(frozen=True, eq=False)
class FeatNorm:
    """Steps with their statistics: what makes a model's input of raw features.

    Args:
        steps: of `FEAT_NORMS`, in their order.
        mean, factor: of the step on columns, float64 [I]: x becomes (x - mean) * factor. None: there is no such step.
        inductive: the statistics are of training vertices only.
    """

    steps: tuple[str, ...]
    mean: torch.Tensor | None = None
    factor: torch.Tensor | None = None
    inductive: bool = False

    @property
    def name(self) -> str:
        """As it was asked for."""
        return ",".join(self.steps)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Raw rows [n, I] as the model sees them, in float64."""
        rows, before = rows.double(), rows.new_zeros((), dtype=torch.float64)
        for step in self.steps:
            if step in OF_COLUMNS:
                mean, factor = self.columns(rows.device)
                before = ((rows * factor) ** 2).sum(1) + ((mean * factor) ** 2).sum()
                rows = (rows - mean) * factor
            else:
                rows = rows * inverse_norms((rows**2).sum(1), before)[:, None]
        return rows

    def columns(self, device: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and factor, on a device."""
        if self.mean is None or self.factor is None:
            raise RuntimeError("there are no statistics yet")
        return self.mean.to(device), self.factor.to(device)


def inverse_norms(squares: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """1 / norm, and 0 where the squares [n] are nothing beside those `before` means were taken away."""
    there = squares > ROUNDING * before
    return torch.where(there, torch.where(there, squares, 1.0).rsqrt(), 0.0)
