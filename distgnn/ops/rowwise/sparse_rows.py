"""Sparse input features: products over the non-zeros, made dense only for a layer that can do nothing else.

    X W = sum over the non-zeros of a row of x times a row of W        X' G: the same over the columns of X

Both are aggregations, run by the kernel that aggregates neighbours: non-zeros are the arcs from columns to rows.

`SparseRows` is a tensor to everybody: `torch.nn.Linear`, `@` and `F.linear` take the sparse product with its gradient,
factors per row and dropout that drops nothing keep it sparse, and every other torch function gets the dense rows. Those
are made once, kept, and told to `on_dense`.

Rows may be shifted: they stand for X - q m', with a factor q of each row and one row m (the means of columns). No dense
row is made for that: X has one column more with -q, and W one row more with m' W.

    (X - q m') W = [X, -q] [W; m' W]        (X - q m')' G = X' G - m (q' G)

The rows of bfloat16 weights have two such rows, since m' W rounded to 8 bits would shift all rows.

Legend: O rows, I columns in, D columns out.

Over 300 lines: the tensor and the products that it stands for.
"""

from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.csr_rows import Entries, blocks
from distgnn.ops.function import constants, linear_map

BLOCK_ROWS = 1 << 15  # of gradients whose dtype is changed for a product
DENSE_ABOVE = 0.1  # share of non-zeros up to which the sparse product is surely cheaper: docs/internals/epoch.md


class SparseRows(torch.Tensor):
    """Constant rows [O, I] as CSR, with the shape and dtype of the dense tensor they stand for, and no storage.

    Args:
        matrix: scipy CSR [O, I]; dtype: of the rows it is multiplied into (values are float64 or float32).
        on_dense: called once with the dense rows, where some function needs them.
        shift: q [O] and m [I], where q m' is to be taken away.

    Attributes:
        sums: of (edge weights, scales): the aggregation of these rows, where it is kept; None: it is not.

    Notes: `indices` and `values` have the columns of the shift, I and following, at the end of each row.

    Example:
        >>> from scipy.sparse import csr_matrix
        >>> dg.ops.SparseRows(csr_matrix(np.eye(3)), torch.float32)
        SparseRows(3 x 3, 3 non-zeros, torch.float32)
    """

    indptr: np.ndarray
    indices: Any  # [nnz] and values [nnz], in place of the methods of sparse tensors of that name
    values: Any
    on_dense: Callable[[torch.Tensor], None] | None
    sums: Callable[[torch.Tensor | None, tuple], "SparseRows"] | None
    shift_row: torch.Tensor | None  # m

    @staticmethod
    def __new__(
        cls,
        matrix: Any,
        dtype: torch.dtype,
        on_dense: Callable[[torch.Tensor], None] | None = None,
        shift: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Any:
        rows = torch.Tensor._make_wrapper_subclass(cls, tuple(matrix.shape), dtype=dtype)
        rows.indptr, rows.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        rows.values = matrix.data.astype(np.float64 if dtype == torch.float64 else np.float32)
        rows.on_dense, rows.sums, rows.shift_row = on_dense, None, None
        if shift is not None:  # one column of -q; two where weights are bfloat16
            factors, mean = shift
            rows.shift_row = torch.from_numpy(np.asarray(mean, dtype=np.float64))
            count, width = rows.num_more, rows.shape[1]
            places = np.repeat(rows.indptr[1:], count)
            columns = np.tile(np.arange(width, width + count), len(rows)).astype(np.int32)
            rows.indices = np.insert(rows.indices, places, columns)
            rows.values = np.insert(rows.values, places, np.repeat(-factors, count).astype(rows.values.dtype))
            rows.indptr = rows.indptr + count * np.arange(len(rows.indptr))
        return rows

    @property
    def num_more(self) -> int:
        """Columns that the shift adds: 0, 1 or 2."""
        return 0 if self.shift_row is None else 2 if self.dtype == torch.bfloat16 else 1

    def __init__(self, *args: Any, **options: Any):
        pass

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        count = len(self.indices) - self.num_more * len(self)
        return f"SparseRows({len(self)} x {self.shape[1]}, {count} non-zeros, {self.dtype})"

    def detach(self) -> "SparseRows":
        return self

    def times(self, weight: torch.Tensor, out: torch.Tensor, add: bool = False) -> torch.Tensor:
        """out [O, D] becomes, or is increased by, these rows times weight [I, D]."""
        if self.shift_row is not None and len(self) < self.shape[1] and weight.dtype != torch.bfloat16:
            # `out` is smaller than the weight: X W without a copy of W, then - q (m' W).
            indptr, indices, values = self._without_shift
            kernels.spmm(indptr, indices, as_array(weight.contiguous()), "sum", values, as_array(out), accumulate=add)
            factors = torch.from_numpy(self.values[self.indptr[1:] - 1])
            return out.addr_(factors, self.shift_row.to(weight.dtype) @ weight)
        if self.shift_row is not None:  # below the weight stands what rows of the shift multiply
            if weight.dtype == torch.bfloat16:
                exact = self.shift_row.float() @ weight.float()
                rounded = exact.to(weight.dtype)
                more = [rounded[None], (exact - rounded.float()).to(weight.dtype)[None]]
            else:
                more = [(self.shift_row.to(weight.dtype) @ weight)[None]]
            weight = torch.cat([weight, *more])
        arrays = self.indptr, self.indices, as_array(weight), "sum", self.values, as_array(out)
        kernels.spmm(*arrays, accumulate=add)
        return out

    def turned_times(self, grads: torch.Tensor) -> torch.Tensor:
        """These rows transposed times grads [O, D]: [I, D], float32 for bfloat16."""
        indptr, indices, values = self._transposed
        turned = torch.from_numpy(kernels.spmm(indptr, indices, as_array(grads), "sum", values))
        if self.shift_row is None:
            return turned
        # -q' grads, [D]: as a row of the transposed matrix it would be one thread's work.
        factors = torch.from_numpy(self.values[self.indices == self.shape[1]])
        total = torch.zeros(grads.shape[1], dtype=factors.dtype)
        for block in blocks(len(factors), BLOCK_ROWS):
            total += factors[block] @ grads[block].to(factors.dtype)
        return turned.addr_(self.shift_row.to(turned.dtype), total)

    def square_sums(self) -> np.ndarray:
        """The sum of squares of each column, [I], float64."""
        width, there = self.shape[1], self.indices < self.shape[1]
        columns, values = self.indices[there], self.values[there].astype(np.float64)
        total = np.bincount(columns, values**2, minlength=width)
        if self.shift_row is None:
            return total
        factors, mean = -self.values[self.indices == width].astype(np.float64), self.shift_row.numpy()
        of_row = np.repeat(np.arange(len(self)), np.diff(self.indptr))[there]
        both = np.bincount(columns, values * factors[of_row], minlength=width)
        return total - 2 * mean * both + mean**2 * (factors**2).sum()

    def dense(self) -> torch.Tensor:
        """The rows as an ordinary tensor, made at the first call and kept."""
        with constants():
            return self._dense

    @cached_property
    def _dense(self) -> torch.Tensor:
        there = self.indices < self.shape[1]
        where = torch.from_numpy(np.repeat(np.arange(len(self)), np.diff(self.indptr))[there])
        columns, values = torch.from_numpy(self.indices[there].astype(np.int64)), torch.from_numpy(self.values[there])
        wide = self.dtype if self.shift_row is None else values.dtype
        rows = torch.zeros(tuple(self.shape), dtype=wide)
        rows.index_put_((where, columns), values.to(wide), accumulate=True)
        if self.shift_row is not None:
            factors = torch.from_numpy(self.values[self.indices == self.shape[1]])
            rows = rows.addr_(factors, self.shift_row.to(wide)).to(self.dtype)
        if self.on_dense:
            self.on_dense(rows)
        return rows

    @cached_property
    def _without_shift(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """indptr, indices and values without the columns of the shift."""
        if self.shift_row is None:
            return self.indptr, self.indices, self.values
        there = self.indices < self.shape[1]
        return self.indptr - self.num_more * np.arange(len(self.indptr)), self.indices[there], self.values[there]

    @cached_property
    def _transposed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        indptr, indices, values = self._without_shift
        indptr, indices, positions = kernels.transpose_csr(indptr, indices, self.shape[1])
        return indptr, indices, values[positions]

    def rows_at(self, rows: np.ndarray) -> "SparseRows":
        """Some of the rows, in the order of `rows` (places)."""
        entries = Entries(self.indptr, rows)
        return self.of_columns(entries.indptr, entries.of(self.indices), entries.of(self.values))

    def of_columns(self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> "SparseRows":
        """Other rows over the same columns, the shift's among them."""
        arrays = {"indptr": indptr, "indices": indices, "data": values}
        rows = SparseRows(SimpleNamespace(shape=(len(indptr) - 1, self.shape[1]), **arrays), self.dtype)
        rows.shift_row = self.shift_row
        return rows

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in PLAIN:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if func in KEPT_SPARSE:
            found = KEPT_SPARSE[func](*args, **kwargs)
            if found is not NotImplemented:
                return found
        return func(*map(dense, args), **{name: dense(value) for name, value in kwargs.items()})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """What comes from below torch's functions, C++ code for one, gets the dense rows."""
        return func(*map(dense, args), **{name: dense(value) for name, value in (kwargs or {}).items()})


def dense(rows: Any) -> Any:
    """Sparse rows (also in a list or tuple) as a dense tensor; anything else as it is."""
    if isinstance(rows, SparseRows):
        return rows.dense()
    return type(rows)(map(dense, rows)) if type(rows) in (list, tuple) else rows


def _matmul(rows: Any, weight: Any, **kwargs: Any) -> Any:
    if kwargs or not isinstance(rows, SparseRows) or isinstance(weight, SparseRows) or weight.dim() != 2:
        return NotImplemented
    dtype = weight.dtype

    def product(one: torch.Tensor) -> torch.Tensor:
        return rows.times(one.to(rows.dtype), torch.empty(len(rows), one.shape[1], dtype=rows.dtype))

    return linear_map(weight, product, lambda grad: rows.turned_times(grad).to(dtype))


def _linear(rows: Any, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
    product = _matmul(rows, weight.t())
    return product if product is NotImplemented or bias is None else product + bias


def _times_column(rows: Any, factors: Any) -> Any:
    """Rows times one constant factor per row, [O, 1] (degrees), or one number."""
    if not isinstance(rows, SparseRows):
        rows, factors = factors, rows
    if isinstance(factors, (int, float)):
        factors = torch.tensor(factors, dtype=torch.float64).expand(len(rows), 1)
    if isinstance(factors, SparseRows) or factors.requires_grad or tuple(factors.shape) != (len(rows), 1):
        return NotImplemented
    of_rows = factors[:, 0].numpy().astype(rows.values.dtype)
    return rows.of_columns(rows.indptr, rows.indices, rows.values * np.repeat(of_rows, np.diff(rows.indptr)))


def _dropout(rows: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    return rows if p == 0 or not training else NotImplemented


def _same(rows: Any, *args: Any, **kwargs: Any) -> Any:
    wanted = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.dtype)]
    return rows if not kwargs.get("copy") and all(one == rows.dtype for one in wanted) else NotImplemented


_TENSOR: Any = torch.Tensor
_ASKED = "shape dtype device layout requires_grad is_leaf grad_fn ndim is_sparse _version".split()
_CALLED = "size dim numel __len__ is_floating_point is_inference _is_view".split()
# What asks for no numbers
PLAIN = {*(getattr(_TENSOR, name).__get__ for name in _ASKED), *(getattr(_TENSOR, name) for name in _CALLED)}
KEPT_SPARSE: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((torch.matmul, torch.mm, _TENSOR.matmul, _TENSOR.mm, _TENSOR.__matmul__), _matmul),
    **dict.fromkeys((torch.mul, _TENSOR.mul, _TENSOR.__mul__, _TENSOR.__rmul__), _times_column),
    F.linear: _linear,
    F.dropout: _dropout,
    _TENSOR.to: _same,
    _TENSOR.float: lambda rows: rows if rows.dtype == torch.float32 else NotImplemented,
    _TENSOR.contiguous: lambda rows, **_: rows.dense(),
}


def worth_sparse(comm: Any, matrix: Any) -> bool:
    """Is the sparse product cheaper, over all ranks? Collective: yes."""
    nonzeros, places = comm.allreduce(matrix.nnz), comm.allreduce(matrix.shape[0] * matrix.shape[1])
    return nonzeros <= DENSE_ABOVE * places
