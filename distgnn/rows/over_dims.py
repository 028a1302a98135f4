"""Functions over a dimension: within rows each rank its own, over the rows of all ranks with one exchange.

    sum mean var std norm count_nonzero all any        sums over ranks
    max min amax amin argmax argmin aminmax            extremes over ranks; argmax gives a global place
    logsumexp softmax log_softmax                      of the extreme and the sum

Gradients: what is made of all rows is the same on every rank, and each rank's backward pass has its share of its
gradient. `all_sum` adds the shares, so the gradient of a rank's rows is whole.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.ops.function import NARROW, rounded, wide
from distgnn.rows.reductions import GLOBAL, Dims, counted, extreme, extreme_of_all, moments, number_of, over_all, summed
from distgnn.rows.row_tensor import HANDLERS, INSTEAD, RowTensor, gathered, handles, local_of, refuse, rows_of, whole_of

KEEPS = """
softmax log_softmax softmin cumsum cumprod cummax cummin logcumsumexp sort argsort topk flip roll normalize diff
""".split()  # the dimension stays, or another length takes its place
SECOND = """
norm topk kthvalue quantile nanquantile normalize roll vector_norm linalg_vector_norm diff
""".split()  # the dimension is the second argument behind the tensor, of others the first
OVER_DIMS = """
sum mean std var std_mean var_mean norm vector_norm linalg_vector_norm max min amax amin aminmax argmax argmin all any
logsumexp prod count_nonzero nansum nanmean median nanmedian mode quantile nanquantile kthvalue glu
""".split()
DEFAULT = {"normalize": 1, **dict.fromkeys(("glu", "topk", "sort", "argsort", "kthvalue", "diff"), -1)}
NAMES = {"dim", "axis", "dims"}


def over_dims(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    name, rows = func.__name__, input
    if not isinstance(rows, RowTensor):
        refuse(name)
    place, given = int(name in SECOND), None
    others = list(args)
    for key in NAMES & set(kwargs):
        given = kwargs.pop(key)
    if given is None and len(others) > place and _is_dim(others[place]):
        given = others.pop(place)
    elif given is None and name in ("max", "min") and others and isinstance(others[0], torch.Tensor):
        return getattr(torch, f"{name}imum")(rows, others[0])
    out = kwargs.pop("out", None)
    kwargs.pop("_stacklevel", None)
    given = DEFAULT.get(name) if given is None else given
    dims: Dims = tuple(range(rows.dim()))
    if given is not None and given != () and given != []:
        dims = tuple(dim % rows.dim() for dim in ([given] if isinstance(given, int) else given))
    keepdim = kwargs.pop("keepdim", False)
    if place < len(others) and isinstance(others[place], bool) and name not in KEEPS and name not in ("std", "var"):
        keepdim = others.pop(place)
    if rows.row_dim in dims and name not in GLOBAL:
        refuse(name)
    if out is not None:
        refuse(name, "leave out= out")
    if rows.row_dim in dims:
        found = GLOBAL[name](wide(rows), dims, keepdim, given, *others, **kwargs)
        return rounded(found, rows.dtype) if rows.dtype in NARROW and kwargs.get("dtype") is None else found
    if name in KEEPS or name == "glu":
        call = {"dims" if name in ("roll", "flip") else "dim": given}
        return _rows_like(func(rows.inner, *map(local_of, others), **call, **kwargs), rows, rows.row_dim)
    kwargs |= {"keepdim": keepdim} if keepdim else {}
    found = func(rows.inner, *map(local_of, others), dim=given, **kwargs)
    behind = rows.dim() - rows.row_dim - (0 if keepdim else sum(dim > rows.row_dim for dim in dims))
    several = found if isinstance(found, torch.Tensor) else found[0]  # of quantiles another dimension, in front
    return _rows_like(found, rows, several.dim() - behind)


for _name in (*OVER_DIMS, *KEEPS):
    HANDLERS[_name] = over_dims


def _is_dim(value: Any) -> bool:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return True
    return isinstance(value, list | tuple) and all(isinstance(one, int) for one in value)


def _rows_like(found: Any, rows: RowTensor, dim: int) -> Any:
    if isinstance(found, torch.Tensor):
        return rows_of(found, rows.row_space, dim)
    return type(found)(tuple(rows_of(one, rows.row_space, dim) for one in found))


def _of_sum(before: Callable[..., Any], after: Callable[..., Any] = lambda total, count: total) -> Callable[..., Any]:
    """A function of a sum over all rows: `before` of this rank's values, `after` of the sum and how many there are."""

    def function(rows: RowTensor, dims: Dims, keepdim: bool, given: Any, dtype: torch.dtype | None = None) -> Any:
        values = counted(rows) if dtype is None else counted(rows).to(dtype)
        return whole_of(after(summed(rows, before(values), dims, keepdim), number_of(rows, dims)))

    return function


GLOBAL |= {
    "sum": _of_sum(lambda values: values),
    "mean": _of_sum(lambda values: values, lambda total, count: total / count),
    "nansum": _of_sum(lambda values: torch.nan_to_num(values, nan=0.0)),
    "count_nonzero": _of_sum(lambda values: (values != 0).long()),
    "all": _of_sum(lambda values: (~values.bool()).long(), lambda missing, count: missing == 0),
    "any": _of_sum(lambda values: values.bool().long(), lambda found, count: found > 0),
}


@over_all("nanmean")
def _nanmean(rows: RowTensor, dims: Dims, keepdim: bool, given: Any) -> torch.Tensor:
    known = summed(rows, (~torch.isnan(counted(rows))).long(), dims, keepdim)
    return whole_of(GLOBAL["nansum"](rows, dims, keepdim, given) / known)


def _spread(finish: Callable[[torch.Tensor, torch.Tensor], Any]) -> Callable[..., Any]:
    """A function of variance and mean, whose `unbiased` and `correction` are torch's."""

    def function(
        rows: RowTensor, dims: Dims, keepdim: bool, given: Any, unbiased: Any = None, *, correction: Any = None
    ) -> Any:
        correction = (0 if unbiased is False else 1) if correction is None else correction
        found = finish(*moments(rows, dims, keepdim, correction))
        return tuple(map(whole_of, found)) if isinstance(found, tuple) else whole_of(found)

    return function


GLOBAL["var"], GLOBAL["std"] = _spread(lambda variance, mean: variance), _spread(lambda variance, mean: variance.sqrt())
GLOBAL["var_mean"] = _spread(lambda variance, mean: (variance, mean))
GLOBAL["std_mean"] = _spread(lambda variance, mean: (variance.sqrt(), mean))


@handles("linalg_norm")
def linalg_norm(func: Any, A: RowTensor, ord: Any = None, dim: Any = None, **options: Any) -> torch.Tensor:
    """Of all numbers, or of vectors; a norm of matrices is refused."""
    if ord is not None and (A.dim() > 1 if dim is None else isinstance(dim, list | tuple)):
        refuse("linalg.norm", "a norm of the whole matrix is not there: x.norm() is that of its numbers")
    return torch.linalg.vector_norm(A, 2 if ord is None else ord, dim, **options)


@over_all("norm", "vector_norm", "linalg_vector_norm")
def _norm(rows: RowTensor, dims: Dims, keepdim: bool, given: Any, p: Any = 2, **options: Any) -> torch.Tensor:
    p = options.pop("ord", p)
    p = 2 if p in ("fro", None) else p
    if isinstance(p, str) or options.get("dtype") is not None:
        refuse("norm", "take the norm of numbers: x.norm(), x.norm(2, dim)")
    values = counted(rows).abs()
    if p in (float("inf"), float("-inf")):
        return whole_of(extreme(rows, values, dims, keepdim, "max" if p > 0 else "min"))
    if p == 0:
        return summed(rows, (values != 0).to(values.dtype), dims, keepdim)
    if p == 2:
        return whole_of(_root(summed(rows, values.square(), dims, keepdim)))
    return whole_of(summed(rows, values**p, dims, keepdim) ** (1 / p))


def _root(squares: torch.Tensor) -> torch.Tensor:
    """A square root whose gradient at 0 is 0, as a norm's."""
    is_zero = squares == 0
    return squares.masked_fill(is_zero, 1).sqrt().masked_fill(is_zero, 0)


# --- order: every rank has all numbers of one column, and the ids ---------------------------------------------------


def _sorted(rows: RowTensor, dims: Dims, keepdim: bool, given: Any, *args: Any, name: str, **options: Any) -> Any:
    """`sort`, `argsort` and `topk` of a column: values are rows with a gradient, ids ordinary numbers."""
    if rows.dim() > 1:
        refuse(name, ORDER.format(name=name))
    found = getattr(torch, name)(gathered(rows), *args, dim=0, **options)
    if name == "argsort":
        return found
    return getattr(torch.return_types, name)((rows[found.indices], found.indices))


ORDER = "take one column, x[:, 0].{name}(), or x.whole().{name}(0): all rows, without a gradient"
for _name in ("sort", "argsort", "topk"):
    GLOBAL[_name] = functools.partial(_sorted, name=_name)
for _name in ("median", "nanmedian", "mode", "quantile", "nanquantile", "kthvalue"):
    INSTEAD[_name] = f"write x.whole().{_name}(...): all rows, without a gradient"
INSTEAD["cumsum"] = (
    "write x.whole().cumsum(0); aggregators that sort or read a sequence: take sum, mean, max, min, std, var or softmax"
)


# --- exponentials ------------------------------------------------------------------------------------------------


def _log_sum(rows: RowTensor, dims: Dims) -> torch.Tensor:
    """With the dimensions kept. Collective: yes, and backward."""
    values = counted(rows)
    top = extreme_of_all(rows, values.detach(), dims, "max")
    top = torch.where(torch.isfinite(top), top, torch.zeros_like(top))
    return summed(rows, (values - top).exp(), dims, True).log() + top


@over_all("logsumexp")
def _logsumexp(rows: RowTensor, dims: Dims, keepdim: bool, given: Any) -> torch.Tensor:
    found = _log_sum(rows, dims)
    return whole_of(found if keepdim else found.squeeze(dims))


@over_all("log_softmax")
def _log_softmax(
    rows: RowTensor, dims: Dims, keepdim: bool, given: Any, *_: Any, dtype: Any = None, **options: Any
) -> RowTensor:
    rows = rows if dtype is None else rows.like(rows.inner.to(dtype))
    return rows.like(rows.inner - _log_sum(rows, dims))


def _softmax(rows: RowTensor, *arguments: Any, sign: int = 1, **options: Any) -> RowTensor:
    found = _log_softmax(rows if sign == 1 else rows.like(-rows.inner), *arguments, **options)
    return found.like(found.inner.exp())


GLOBAL |= {"softmax": _softmax, "softmin": functools.partial(_softmax, sign=-1)}


@over_all("normalize")
def _normalize(
    rows: RowTensor, dims: Dims, keepdim: bool, given: Any, p: float = 2.0, *, eps: float = 1e-12
) -> RowTensor:
    length = _norm(rows, dims, True, given, p)
    return rows.like(rows.inner / local_of(length).clamp_min(eps))


# --- what is counted ---------------------------------------------------------------------------------------------


@handles("bincount")
def bincount(func: Any, input: RowTensor, weights: Any = None, minlength: int = 0) -> torch.Tensor:
    """How often each number stands in the rows of all ranks."""
    top = int(input.max()) + 1 if input.shape[0] else 0
    return _counts(input, torch.bincount(counted(input), local_of(weights), minlength=max(top, minlength)))


def _counts(rows: RowTensor, here: torch.Tensor) -> torch.Tensor:
    comm = rows.row_space.comm
    return here if comm.size == 1 else torch.from_numpy(sum_over_ranks(comm, here.numpy()))


@handles("unique")
def unique(
    func: Any,
    input: RowTensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different numbers of all ranks' rows, sorted; `return_inverse` gives rows, `return_counts` all counts."""
    if dim is not None:
        refuse("unique", "leave dim out: the different numbers of all ranks' rows come, not the different rows")
    mine = np.unique(counted(input).detach().numpy())
    values = np.unique(np.concatenate(input.row_space.comm.allgather(mine)))
    found: list[Any] = [torch.from_numpy(values)]
    places = torch.from_numpy(np.searchsorted(values, input.inner.detach().numpy()))
    if return_inverse:
        found.append(input.like(places))
    if return_counts:
        here = places.reshape(-1)[: counted(input).numel()]
        found.append(_counts(input, torch.bincount(here, minlength=len(values))))
    return found[0] if len(found) == 1 else tuple(found)


HANDLERS["equal"] = lambda func, input, other: input.shape == other.shape and bool((input == other).all())
HANDLERS["allclose"] = lambda func, *args, **kwargs: bool(torch.isclose(*args, **kwargs).all())
