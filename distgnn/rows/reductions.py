"""Reductions, losses and norms of rows of all ranks, and what they are made of.

Equal values share the gradient of an extreme without a place, as in `torch.amax`; with a place the first row has it.

Losses of rows: a mean or a sum over the rows of all ranks, or one number for each row.

Norms over rows: statistics of the rows of all ranks, however many of them a mask leaves.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.comm import extreme_over_ranks
from distgnn.ops.function import wide
from distgnn.ops.sums import all_sum, are_top, shared_by_top
from distgnn.rows.align import Aligned, in_space, local_in, part_of
from distgnn.rows.row_tensor import INSTEAD, RowTensor, handles, local_of, named, refuse, rows_of, whole_of
from distgnn.rows.shapes import flattened

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
        return top if keepdim else top.squeeze(dims)
    count = summed(rows, best.to(values.dtype), dims, True)
    chosen = torch.where(best, values, torch.zeros_like(values))
    out = shared_by_top(summed(rows, chosen, dims, True), count, top)
    return out if keepdim else out.squeeze(dims)


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


def _max_or_min(rows: RowTensor, dims: Dims, keepdim: bool, given: Any, *, which: str, with_place: bool = True) -> Any:
    values = counted(rows)
    if given is None or not with_place:
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
        rows, dims = flattened(rows), (0,)
    (dim,) = dims
    places = places_of_extreme(rows, dim, extreme_of_all(rows, counted(rows).detach(), dims, which))
    return places if keepdim else places.squeeze(dim)


for _which in ("max", "min"):
    GLOBAL[_which] = functools.partial(_max_or_min, which=_which)
    GLOBAL[f"a{_which}"] = functools.partial(_max_or_min, which=_which, with_place=False)
    GLOBAL[f"arg{_which}"] = functools.partial(_arg, which=_which)


@over_all("aminmax")
def _aminmax(*arguments: Any) -> Any:
    return torch.return_types.aminmax((GLOBAL["amin"](*arguments), GLOBAL["amax"](*arguments)))


ELEMENTWISE = (
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div", "poisson_nll_loss"),
    *("binary_cross_entropy_with_logits", "soft_margin_loss", "gaussian_nll_loss", "hinge_embedding_loss"),
)
OF_ROWS = (
    *("margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss", "multi_margin_loss"),
    *("multilabel_margin_loss", "multilabel_soft_margin_loss"),
)
PER_CLASS = ("weight", "pos_weight")  # ordinary tensors with a number per class, beside those with one per row


def _given(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], str]:
    given = named(func, args, kwargs)
    reduction = given.pop("reduction", "mean")
    if given.pop("size_average", None) is not None or given.pop("reduce", None) is not None:
        refuse(func.__name__, "size_average and reduce are old: give reduction='mean', 'sum' or 'none'")
    return given, reduction


def _each_of_rows(func: Any, given: dict[str, Any]) -> RowTensor:
    """The loss without reduction, where the first dimension of every argument counts rows."""
    first = next(value for value in given.values() if isinstance(value, RowTensor))
    space, local = first.row_space, {}
    for name, value in given.items():
        if isinstance(value, RowTensor):
            if value.row_dim != 0:
                refuse(func.__name__, "rows are the first dimension of scores and targets")
            value = in_space(value, space).inner
        elif isinstance(value, torch.Tensor) and value.dim() and name not in PER_CLASS:
            value = part_of(local_of(value), space, 0, func.__name__)
        local[name] = local_of(value)
    return rows_of(func(**local, reduction="none"), space)


def _each(func: Any, given: dict[str, Any]) -> RowTensor:
    classes = {}
    for name in PER_CLASS:
        value = given.get(name)
        if isinstance(value, torch.Tensor) and not isinstance(value, RowTensor) and value.dim() < given["input"].dim():
            classes[name] = value
    others = {name: value for name, value in given.items() if name not in classes}
    together = Aligned(func.__name__, others.values())
    local = {name: together.local(value) for name, value in others.items()}
    local |= {name: local_of(value) for name, value in classes.items()}
    found = func(**local, reduction="none")
    first = next(value for value in others.values() if isinstance(value, RowTensor))
    return rows_of(found, together.space, first.row_dim)


@handles(*ELEMENTWISE, *OF_ROWS)
def loss(func: Any, *args: Any, **kwargs: Any) -> Any:
    given, reduction = _given(func, args, kwargs)
    each = _each_of_rows(func, given) if func.__name__ in OF_ROWS else _each(func, given)
    if reduction == "batchmean":
        return each.sum() / each.shape[0]
    return _reduced(each, reduction)


def _reduced(each: RowTensor, reduction: str) -> Any:
    if reduction == "none":
        return each
    return each.sum() if reduction == "sum" else each.mean()


@handles("cross_entropy", "nll_loss")
def cross_entropy(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Classes: the mean is over the weights of the targets that count, as in torch."""
    given, reduction = _given(func, args, kwargs)
    each, target = _each_of_rows(func, given), given["target"]
    if reduction != "mean":
        return _reduced(each, reduction)
    if target.is_floating_point():
        return each.mean()
    weight, ignored = given.get("weight"), given.get("ignore_index", -100)
    classes = local_in(target, each.row_space, 0, func.__name__)
    counts = (classes != ignored).double()
    if weight is not None:
        counts = counts * local_of(weight).detach()[classes.clamp(min=0)]
    count = rows_of(counts, each.row_space).sum()
    return whole_of(local_of(each.sum()) / local_of(count).to(each.dtype))


NO_PAIRS = "attention of every row with every row needs all rows: use attention along arcs (GATConv)"
INSTEAD["multi_head_attention_forward"] = NO_PAIRS
INSTEAD["triplet_margin_with_distance_loss"] = "write F.triplet_margin_loss, or the distances with relu() and mean()"


@handles("scaled_dot_product_attention")
def dot_attention(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Within each row (dimension 0 counts rows): local. Among rows: refused."""
    rows = [one for one in args if isinstance(one, torch.Tensor)]
    if kwargs.get("dropout_p") or not all(
        isinstance(one, RowTensor) and one.row_dim == 0 and one.dim() >= 3 for one in rows
    ):
        refuse(func.__name__, NO_PAIRS)
    together = Aligned(func.__name__, rows)
    return together.rows(func(*map(together.local, args), **kwargs))


def _normalised(rows: RowTensor, mean: Any, variance: Any, given: dict[str, Any]) -> RowTensor:
    shape = [1, -1] + [1] * (rows.dim() - 2)
    out = (wide(rows.inner) - mean.view(shape)) * torch.rsqrt(wide(variance).view(shape) + given.get("eps", 1e-5))
    return _scaled(rows, out, given)


def _scaled(rows: RowTensor, out: torch.Tensor, given: dict[str, Any]) -> RowTensor:
    shape = [1, -1] + [1] * (rows.dim() - 2)
    weight, bias = local_of(given.get("weight")), local_of(given.get("bias"))
    out = out if weight is None else out * weight.view(shape)
    out = out if bias is None else out + bias.view(shape)
    return rows.like(out.to(given["input"].dtype))


def _statistics(rows: RowTensor, dims: Dims, keepdim: bool, given: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """(mean, variance) over `dims`, which running statistics follow. Collective: yes, and backward."""
    variance, mean = moments(rows, dims, keepdim, 0)
    count, share, others = number_of(rows, dims), given.get("momentum", 0.1), (0, *dims) if keepdim else ()
    for name, value in (("running_mean", mean), ("running_var", variance * count / max(count - 1, 1))):
        running, value = given.get(name), value.detach().mean(others) if others else value.detach()
        if running is not None:
            with torch.no_grad():
                running.lerp_(value.to(running.dtype), share)
    return mean, variance


@handles("batch_norm")
def batch_norm(func: Any, *args: Any, **kwargs: Any) -> Any:
    """[N, C] or [N, C, L] over all but C; the running variance is the unbiased one."""
    given = named(func, args, kwargs)
    rows = given["input"]
    if not isinstance(rows, RowTensor) or rows.row_dim == 1:
        refuse("batch_norm", "the rows are the channels here: give it [N, C]")
    if not given.get("training", False):
        return _normalised(rows, given.get("running_mean"), given.get("running_var"), given)
    dims = tuple(dim for dim in range(rows.dim()) if dim != 1)
    if number_of(rows, dims) < 2:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {rows.shape}")
    rows = wide(rows)
    return _normalised(rows, *_statistics(rows, dims, False, given), given)


@handles("instance_norm")
def instance_norm(func: Any, *args: Any, **kwargs: Any) -> Any:
    """[B, C, L] over L: local where rows are B, over all ranks where they are L."""
    given = named(func, args, kwargs)
    rows = given["input"]
    if rows.row_dim == 0:
        if given.get("running_mean") is not None and given.get("use_input_stats", True):
            refuse("instance_norm", "its running statistics would be of one rank: track_running_stats=False")
        local = {name: local_of(value) for name, value in given.items()}
        return rows_of(func(**local), rows.row_space)
    if rows.row_dim == 1:
        refuse("instance_norm", "the rows are the channels here")
    if not given.get("use_input_stats", True):
        return _normalised(rows, given["running_mean"], given["running_var"], given)
    rows = wide(rows)
    mean, variance = _statistics(rows, tuple(range(2, rows.dim())), True, given)
    return _scaled(rows, (rows.inner - mean) * torch.rsqrt(variance + given.get("eps", 1e-5)), given)
