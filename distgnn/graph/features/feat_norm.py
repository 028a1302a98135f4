"""Input features centred and scaled when they are loaded, with statistics over all ranks.

    row-l2        x_i / |x_i|                   rows of zeros stay
    center        x_ij - mu_j
    standardize   (x_ij - mu_j) / sigma_j       columns that do not vary become 0

Steps are done one after the other. Features that are stored sparse stay sparse: the factors go into their values, and
the means into a product of their own (`SparseRows` with a shift). Statistics are those of the rows as the steps before
left them, each vertex once, in float64.

Legend: O owned rows, I columns.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.config.feat_norm import OF_COLUMNS, parse_feat_norm
from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.dense.sparse_rows import SparseRows

BLOCK_ROWS = 1 << 14
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
                mean, factor = self._columns(rows.device)
                before = ((rows * factor) ** 2).sum(1) + ((mean * factor) ** 2).sum()
                rows = (rows - mean) * factor
            else:
                rows = rows * _inverse_norms((rows**2).sum(1), before)[:, None]
        return rows

    def sparse(self, matrix: Any, dtype: torch.dtype) -> SparseRows:
        """The same of a scipy CSR [O, I], as sparse rows."""
        matrix = _without_duplicates(matrix)
        values, row_of = matrix.data.astype(np.float64), np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        shift: np.ndarray | None = None
        weight: Any = np.ones(matrix.shape[0])
        for step in self.steps:
            if step in OF_COLUMNS:
                mean, factor = (one.numpy() for one in self._columns())
                values, shift, weight = values * factor[matrix.indices], mean * factor, np.ones_like(weight)
                continue
            squares = np.bincount(row_of, values**2, len(weight))
            before: Any = np.zeros(()) if shift is None else squares + shift @ shift
            if shift is not None:
                squares = before - 2 * np.bincount(row_of, values * shift[matrix.indices], len(weight))
            weight = _inverse_norms(torch.from_numpy(squares), torch.from_numpy(before)).numpy()
            values = values * weight[row_of]
        arrays = {"indptr": matrix.indptr, "indices": matrix.indices, "data": values}
        shifted = None if shift is None else (weight, shift)
        return SparseRows(SimpleNamespace(shape=matrix.shape, **arrays), dtype, shift=shifted)

    def _columns(self, device: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        if self.mean is None or self.factor is None:
            raise RuntimeError("there are no statistics yet")
        return self.mean.to(device), self.factor.to(device)


def fitted(wanted: "str | FeatNorm", local: Any, comm: Any, inductive: bool) -> FeatNorm | None:
    """What `wanted` names with the statistics of the graph whose parts the ranks hold; None for "none".

    Collective: yes, where there is a step on columns.

    Args: inductive: statistics over training vertices only.

    Raises: InputError, on every rank, for unknown steps and for a graph without features.
    """
    if isinstance(wanted, FeatNorm):
        return wanted
    steps = parse_feat_norm(wanted)
    if not steps:
        return None
    if local.feats is None:
        raise on_all_ranks(InputError(f"feat_norm {wanted} needs features: the graph has none"))
    place = next((number for number, step in enumerate(steps) if step in OF_COLUMNS), None)
    if place is None:
        return FeatNorm(steps)
    chosen = np.ones(local.num_owned, dtype=bool)
    if inductive and local.train_mask is not None:
        chosen = np.array(local.train_mask, dtype=bool)
    columns = _Columns(local.feats, FeatNorm(steps[:place]), chosen, comm)
    mean = columns.sums(np.zeros(columns.width), 1) / max(columns.num_rows, 1)
    factor = np.ones_like(mean)
    if steps[place] == "standardize":
        sizes = columns.sums(np.zeros_like(mean), 2)
        squares = columns.sums(mean, 2)
        varies = squares > ROUNDING * sizes
        factor = np.where(varies, np.sqrt(max(columns.num_rows, 1) / np.where(varies, squares, 1.0)), 0.0)
    return FeatNorm(steps, torch.from_numpy(mean), torch.from_numpy(factor), inductive)


class _Columns:
    """Sums over columns of all ranks' chosen rows, after the steps that come first. Collective: everything."""

    def __init__(self, feats: Any, before: FeatNorm, chosen: np.ndarray, comm: Any):
        self._feats, self._before, self._chosen, self._comm = feats, before, chosen, comm
        self.width = feats.shape[1]
        self.num_rows = int(sum_over_ranks(comm, np.array([chosen.sum()]))[0])

    def sums(self, mean: np.ndarray, power: int) -> np.ndarray:
        """The sum of (x - mean) ** power, float64 [I]."""
        mine = self._sparse if hasattr(self._feats, "toarray") else self._dense
        return sum_over_ranks(self._comm, mine(mean, power))

    def _dense(self, mean: np.ndarray, power: int) -> np.ndarray:
        total = np.zeros(self.width)
        for first in range(0, len(self._chosen), BLOCK_ROWS):
            block = slice(first, first + BLOCK_ROWS)
            rows = self._before(torch.from_numpy(np.array(self._feats[block][self._chosen[block]]))).numpy()
            total += ((rows - mean) ** power).sum(0)
        return total

    def _sparse(self, mean: np.ndarray, power: int) -> np.ndarray:
        """Of entries that are there; all others are (-mean) ** power each."""
        rows = self._before.sparse(self._feats, torch.float64)
        taken = np.repeat(self._chosen, np.diff(rows.indptr))
        indices, values = rows.indices[taken], rows.values[taken]
        total = np.bincount(indices, (values - mean[indices]) ** power, self.width)
        others = int(self._chosen.sum()) - np.bincount(indices, minlength=self.width)
        return total + others * (-mean) ** power


def _inverse_norms(squares: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """1 / norm, and 0 where the squares [n] are nothing beside those `before` means were taken away."""
    there = squares > ROUNDING * before
    return torch.where(there, torch.where(there, squares, 1.0).rsqrt(), 0.0)


def _without_duplicates(matrix: Any) -> Any:
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix
