"""Arrays of a part as tensors in memory: they come memory-mapped, or sparse; statistics of features over all ranks.

Each vertex counts once, with its row as the steps before left it.

Legend: O owned rows, I columns.
"""

import mmap
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from distgnn.comm import Transport, sum_over_ranks
from distgnn.config.run import OF_COLUMNS, parse_feat_norm
from distgnn.errors import InputError, on_all_ranks
from distgnn.graph.feat_norm import ROUNDING, FeatNorm, inverse_norms
from distgnn.ops.csr_rows import blocks
from distgnn.ops.rowwise.sparse_rows import SparseRows, worth_sparse
from distgnn.partition import LocalGraph

BLOCK_ROWS = 1 << 14


def as_tensor(array: Any, dtype: torch.dtype) -> torch.Tensor | None:
    """A copy of an array in memory; None for None."""
    return None if array is None else torch.from_numpy(np.array(array)).to(dtype)


def input_rows(
    transport: Transport,
    feats: Any,
    dtype: torch.dtype,
    *,
    sparse: bool,
    norm: FeatNorm | None = None,
    empty: Callable[[int, int, torch.dtype], torch.Tensor] | None = None,
) -> torch.Tensor | SparseRows | None:
    """Features of owned rows in memory: dense, or stored sparse where `sparse` allows it and it multiplies faster.

    Collective: yes, where `sparse` is set and features are stored sparse.

    Args: norm: what is done to them; empty: makes the dense tensor.
    """
    if sparse and hasattr(feats, "toarray") and worth_sparse(transport.comm, feats):
        return SparseRows(feats, dtype) if norm is None else normalized(norm, feats, dtype)
    if feats is None:
        return None
    rows = torch.empty(feats.shape, dtype=dtype) if empty is None else empty(feats.shape[0], feats.shape[1], dtype)
    for some in blocks(len(rows), BLOCK_ROWS):  # a second copy is never there
        block = feats[some]
        raw = torch.from_numpy(np.array(block.toarray() if hasattr(block, "toarray") else block))
        rows[some] = (raw if norm is None else norm(raw)).to(dtype)
    leave_on_disk(feats)
    return rows


def vertex_columns(
    local: LocalGraph, fill: Callable[[torch.Tensor, int | bool], torch.Tensor], label_dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    """Labels, splits and types by their names in `ndata`, over the model's rows; what a part lacks is left out.

    Args: fill: makes a column over the model's rows of one over owned rows, and of a value for the others.
    """
    columns = {
        "label": (local.labels, label_dtype, -1),
        "train_mask": (local.train_mask, torch.bool, False),
        "val_mask": (local.valid_mask, torch.bool, False),
        "test_mask": (local.test_mask, torch.bool, False),
        "ntype": (local.node_types, torch.int64, 0),
    }
    found = {name: (as_tensor(array, dtype), value) for name, (array, dtype, value) in columns.items()}
    return {name: fill(column, value) for name, (column, value) in found.items() if column is not None}


def arc_columns(local: LocalGraph, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Weights, features and types of local arcs by their names in `edata`; what a part lacks is left out."""
    columns = {"weight": as_tensor(local.edge_weight, dtype), "etype": as_tensor(local.edge_types, torch.int64)}
    if local.edge_feats is not None:  # stays mapped where its dtype is right: it may be the largest array of all
        columns["feat"] = torch.from_numpy(local.edge_feats).to(dtype)
    return {name: column for name, column in columns.items() if column is not None}


def leave_on_disk(array: Any) -> None:
    """Let go of the pages of a memory-mapped array; they are read again where it is."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    if array is not None and hasattr(mmap, "MADV_DONTNEED"):
        array.madvise(mmap.MADV_DONTNEED)


# --- steps on features, and their statistics --------------------------------------------------------------------------


def fitted(wanted: str | FeatNorm, local: Any, comm: Any, inductive: bool) -> FeatNorm | None:
    """What `wanted` names with the statistics of the graph whose parts the ranks hold; None for "none".

    Collective: yes, where there is a step on columns.

    Args: inductive: statistics over training vertices only.
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
        for block in blocks(len(self._chosen), BLOCK_ROWS):
            rows = self._before(torch.from_numpy(np.array(self._feats[block][self._chosen[block]]))).numpy()
            total += ((rows - mean) ** power).sum(0)
        return total

    def _sparse(self, mean: np.ndarray, power: int) -> np.ndarray:
        """Of entries that are there; all others are (-mean) ** power each."""
        rows = normalized(self._before, self._feats, torch.float64)
        taken = np.repeat(self._chosen, np.diff(rows.indptr))
        indices, values = rows.indices[taken], rows.values[taken]
        total = np.bincount(indices, (values - mean[indices]) ** power, self.width)
        others = int(self._chosen.sum()) - np.bincount(indices, minlength=self.width)
        return total + others * (-mean) ** power


def normalized(norm: FeatNorm, matrix: Any, dtype: torch.dtype) -> SparseRows:
    """A scipy CSR [O, I] as sparse rows, after the steps of `norm`: factors go into values, means into a shift."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    values, row_of = matrix.data.astype(np.float64), np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    shift: np.ndarray | None = None
    weight: Any = np.ones(matrix.shape[0])
    for step in norm.steps:
        if step in OF_COLUMNS:
            mean, factor = (one.numpy() for one in norm.columns())
            values, shift, weight = values * factor[matrix.indices], mean * factor, np.ones_like(weight)
            continue
        squares = np.bincount(row_of, values**2, len(weight))
        before: Any = np.zeros(()) if shift is None else squares + shift @ shift
        if shift is not None:
            squares = before - 2 * np.bincount(row_of, values * shift[matrix.indices], len(weight))
        weight = inverse_norms(torch.from_numpy(squares), torch.from_numpy(before)).numpy()
        values = values * weight[row_of]
    arrays = {"indptr": matrix.indptr, "indices": matrix.indices, "data": values}
    shifted = None if shift is None else (weight, shift)
    return SparseRows(SimpleNamespace(shape=matrix.shape, **arrays), dtype, shift=shifted)
