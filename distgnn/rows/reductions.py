"""What reductions over the rows of all ranks are made of: the rows that count, sums over ranks, and their table."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.ops.sums import all_sum
from distgnn.rows.row_tensor import RowTensor

Dims = tuple[int, ...]
GLOBAL: dict[str, Callable[..., Any]] = {}  # name -> (rows, dims, keepdim, further arguments) to the result over all


def counted(rows: RowTensor) -> torch.Tensor:
    """The local rows that count."""
    space = rows.row_space
    return rows.inner if space.num_counted == space.num_local else rows.inner.narrow(rows.row_dim, 0, space.num_counted)


def number_of(rows: RowTensor, dims: Dims) -> int:
    """Numbers of all ranks that a reduction over `dims` takes together."""
    return int(np.prod([rows.shape[dim] for dim in dims], dtype=np.int64))


def summed(rows: RowTensor, values: torch.Tensor, dims: Dims, keepdim: bool) -> torch.Tensor:
    """`values`, of local rows that count, added up over `dims` and over ranks. Collective: yes, and backward."""
    here = values.sum(dims, keepdim=keepdim)
    return here if rows.row_space.comm.size == 1 else all_sum(rows.row_space.graph, here)


def over_all(*names: str) -> Callable:
    """Put a function into the table of those over all rows."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        GLOBAL.update(dict.fromkeys(names, function))
        return function

    return register


def moments(rows: RowTensor, dims: Dims, keepdim: bool, correction: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(variance, mean) over `dims`. Collective: yes, and backward."""
    values, count = counted(rows), number_of(rows, dims)
    mean = summed(rows, values, dims, True) / count
    variance = summed(rows, (values - mean).square(), dims, keepdim) / max(count - correction, 0)
    return variance, mean if keepdim else mean.reshape(variance.shape)
