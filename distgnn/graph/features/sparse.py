"""Features that are stored sparse, centred and scaled: factors go into their values, means into a product of their own.

Legend: O owned rows, I columns.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from distgnn.config.run import OF_COLUMNS
from distgnn.graph.features.feat_norm import FeatNorm, inverse_norms
from distgnn.ops.dense.sparse_rows import SparseRows


def normalized(norm: FeatNorm, matrix: Any, dtype: torch.dtype) -> SparseRows:
    """A scipy CSR [O, I] as sparse rows, after the steps of `norm`."""
    matrix = _without_duplicates(matrix)
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


def _without_duplicates(matrix: Any) -> Any:
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix
