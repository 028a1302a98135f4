"""What reductions over the rows of all ranks are made of: rows that count, sums over ranks, extremes, and their table.

Equal values share the gradient of an extreme without a place, as in `torch.amax`; with a place the first row has it.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.comm import extreme_over_ranks
from distgnn.ops.entry import wide
from distgnn.ops.sums import all_sum, are_top, shared_by_top
from distgnn.rows.row_tensor import RowTensor, handles, refuse, whole_of

Dims = tuple[int, ...]
GLOBAL: dict[str, Callable[..., Any]] = {}  # name -> (rows, dims, keepdim, further arguments) to the result over all
over_all = functools.partial(handles, table=GLOBAL)


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


def moments(rows: RowTensor, dims: Dims, keepdim: bool, correction: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(variance, mean) over `dims`. Collective: yes, and backward."""
    values, count = counted(rows), number_of(rows, dims)
    mean = summed(rows, values, dims, True) / count
    variance = summed(rows, (values - mean).square(), dims, keepdim) / max(count - correction, 0)
    return variance, mean if keepdim else mean.reshape(variance.shape)


# --- extremes ----------------------------------------------------------------------------------------------------


def extreme(rows: RowTensor, values: torch.Tensor, dims: Dims, keepdim: bool, which: str) -> torch.Tensor:
    """The largest or smallest of `values` over `dims` and ranks; equal ones share the gradient.

    Collective: yes, and backward.
    """
    with torch.no_grad():
        top = extreme_of_all(rows, values.detach(), dims, which)
        best = are_top(values.detach(), top)
    if not values.requires_grad or not torch.is_grad_enabled():
        return top if keepdim else without(top, dims)
    count = summed(rows, best.to(values.dtype), dims, True)
    chosen = torch.where(best, values, torch.zeros_like(values))
    out = shared_by_top(summed(rows, chosen, dims, True), count, top)
    return out if keepdim else without(out, dims)


def without(values: torch.Tensor, dims: Dims) -> torch.Tensor:
    return values.reshape([size for dim, size in enumerate(values.shape) if dim not in dims])


def extreme_of_all(rows: RowTensor, values: torch.Tensor, dims: Dims, which: str) -> torch.Tensor:
    """With the dimensions kept. Raises: as torch, where there is no row anywhere."""
    if number_of(rows, dims) == 0:
        refuse(which, "there is no row on any rank")
    wide = values.to(torch.uint8) if values.dtype == torch.bool else values
    if wide.numel():
        here = wide.amax(dims, keepdim=True) if which == "max" else wide.amin(dims, keepdim=True)
    else:
        size = [1 if dim in dims else size for dim, size in enumerate(values.shape)]
        here = wide.new_full(size, no_extreme(wide.dtype, which))
    return extreme_over(rows.row_space, here, which).to(values.dtype)


def no_extreme(dtype: torch.dtype, which: str) -> float:
    """What every number is above, for a maximum, or below."""
    bounds = None if dtype.is_floating_point else torch.iinfo(dtype)
    ends = (-torch.inf, torch.inf) if bounds is None else (bounds.min, bounds.max)
    return ends[0] if which == "max" else ends[1]


def extreme_over(space: Any, here: torch.Tensor, which: str) -> torch.Tensor:
    """Entry by entry, over all ranks. Collective: yes."""
    if space.comm.size == 1:
        return here
    array = np.ascontiguousarray(wide(here).numpy())
    return torch.from_numpy(extreme_over_ranks(space.comm, array, which)).to(here.dtype)


def places_of_extreme(rows: RowTensor, dim: int, top: torch.Tensor) -> torch.Tensor:
    """The smallest global place of a row that has the extreme `top` (dimension kept), int64. Collective: yes."""
    values, space = counted(rows).detach(), rows.row_space
    none = np.iinfo(np.int64).max
    places = torch.from_numpy(space.places[: space.num_counted]).view(-1, *[1] * (values.dim() - dim - 1))
    found = torch.where(are_top(values, top), places, none)
    here = found.amin(dim, keepdim=True) if found.shape[dim] else found.new_full(top.shape, none)
    return extreme_over(space, here, "min")


def _max_or_min(rows: RowTensor, dims: Dims, keepdim: bool, given: Any, *, which: str) -> Any:
    values = counted(rows)
    if given is None:
        return whole_of(extreme(rows, values, dims, keepdim, which))
    (dim,) = dims
    top = extreme_of_all(rows, values.detach(), dims, which)
    places = places_of_extreme(rows, dim, top)
    if values.requires_grad:
        mine = torch.from_numpy(rows.row_space.places[: values.shape[dim]])
        mine = mine.view(-1, *[1] * (values.dim() - dim - 1))
        chosen = torch.where(mine == places, values, torch.zeros_like(values))
        top = summed(rows, chosen, dims, True)
    pair = (top, places) if keepdim else (top.squeeze(dim), places.squeeze(dim))
    return getattr(torch.return_types, which)((whole_of(pair[0]), pair[1]))


def _arg(rows: RowTensor, dims: Dims, keepdim: bool, given: Any, *, which: str) -> torch.Tensor:
    if given is None and rows.dim() > 1:
        from distgnn.rows.shapes import flattened

        rows, dims = flattened(rows), (0,)
    (dim,) = dims
    places = places_of_extreme(rows, dim, extreme_of_all(rows, counted(rows).detach(), dims, which))
    return places if keepdim else places.squeeze(dim)


def _amax_or_min(rows: RowTensor, dims: Dims, keepdim: bool, given: Any, *, which: str) -> torch.Tensor:
    return whole_of(extreme(rows, counted(rows), dims, keepdim, which))


for _which in ("max", "min"):
    GLOBAL[_which] = functools.partial(_max_or_min, which=_which)
    GLOBAL[f"a{_which}"] = functools.partial(_amax_or_min, which=_which)
    GLOBAL[f"arg{_which}"] = functools.partial(_arg, which=_which)


@over_all("aminmax")
def _aminmax(*arguments: Any) -> Any:
    return torch.return_types.aminmax((GLOBAL["amin"](*arguments), GLOBAL["amax"](*arguments)))
