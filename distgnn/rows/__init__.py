"""Rows that know that they are rows. What a script does with them it does with all ranks' rows."""

from distgnn.rows import (  # noqa: F401 - they fill the table of functions
    draws,
    gradients,
    groups,
    indexing,
    losses,
    norms,
    over_dims,
    products,
    row_by_row,
    shapes,
)
from distgnn.rows.row_tensor import RowTensor, WholeTensor, is_rows, local_of, rows_of
from distgnn.rows.space import Space

__all__ = ["RowTensor", "Space", "WholeTensor", "is_rows", "local_of", "rows_of"]
