"""Rows that know that they are rows. What a script does with them it does with all ranks' rows."""

# These fill the table of functions.
from distgnn.rows import draws, gradients, groups, indexing, over_dims, products, reductions, row_by_row, shapes  # noqa: F401
from distgnn.rows.row_tensor import RowTensor, WholeTensor, local_of, rows_of
from distgnn.rows.space import Space

__all__ = ["RowTensor", "Space", "WholeTensor", "local_of", "rows_of"]
