"""Sparse input features: products over the non-zeros, never made dense.

    X W = sum over the non-zeros of a row of x times a row of W        X' G: the same over the columns of X

Both are aggregations, run by the kernel that aggregates neighbours: non-zeros are the arcs from columns to rows.

Legend: O rows, I columns in, D columns out.
"""

from functools import cached_property
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array

DENSE_ABOVE = 0.1  # share of non-zeros up to which the sparse product is surely cheaper: docs/internals/epoch.md


class SparseRows:
    """Constant rows [O, I] as CSR. It answers to what layers ask of a tensor before they multiply it.

    Args:
        matrix: scipy CSR [O, I]; dtype: of the rows it is multiplied into (values are float64 or float32).
    """

    requires_grad = False

    def __init__(self, matrix: Any, dtype: torch.dtype):
        self.shape, self.dtype = tuple(matrix.shape), dtype
        self.indptr, self.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        self.values = matrix.data.astype(np.float64 if dtype == torch.float64 else np.float32)

    def __len__(self) -> int:
        return self.shape[0]

    def dim(self) -> int:
        return 2

    def detach(self) -> "SparseRows":
        return self

    def times(self, weight: torch.Tensor, out: torch.Tensor, add: bool = False) -> torch.Tensor:
        """out [O, D] becomes, or is increased by, these rows times weight [I, D]."""
        arrays = self.indptr, self.indices, as_array(weight), "sum", self.values, as_array(out)
        kernels.spmm(*arrays, accumulate=add)
        return out

    def turned_times(self, grads: torch.Tensor) -> torch.Tensor:
        """These rows transposed times grads [O, D]: [I, D], float32 for bfloat16."""
        indptr, indices, values = self._transposed
        return torch.from_numpy(kernels.spmm(indptr, indices, as_array(grads), "sum", values))

    @cached_property
    def _transposed(self) -> tuple:
        indptr, indices, positions = kernels.transpose_csr(self.indptr, self.indices, self.shape[1])
        return indptr, indices, self.values[positions]


def worth_sparse(comm: Any, matrix: Any) -> bool:
    """Is the sparse product cheaper, over all ranks? Collective: yes."""
    nonzeros, places = matrix.nnz, matrix.shape[0] * matrix.shape[1]
    nonzeros, places = comm.allreduce(nonzeros), comm.allreduce(places)
    return nonzeros <= DENSE_ABOVE * places
