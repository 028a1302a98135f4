"""Rows added up by a group of each: `scatter_add`, `index_add`, `scatter_reduce` into an ordinary tensor [groups, ...].

out[index[v]] += src[v]      over the rows v of all ranks: the result is the same on every rank
"""

from typing import Any

import torch

from distgnn.ops.sums import all_sum, are_top, shared_by_top
from distgnn.rows.align import local_in
from distgnn.rows.reductions import extreme_over, no_extreme
from distgnn.rows.row_by_row import again
from distgnn.rows.row_tensor import RowTensor, handles, into_ordinary, local_of, refuse, whole_of

REDUCES = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min"}
BY_OWN = (
    "into rows of vertices: along arcs give graph.edge_index, by id write x.index_add_(0, ids, values); into groups "
    "give an ordinary tensor of one row for each group"
)


def _local(out: Any, dim: int, index: Any, src: Any, name: str) -> tuple[torch.Tensor, torch.Tensor, Any]:
    """(index and source of this rank's counted rows, the space)."""
    if isinstance(out, RowTensor):
        refuse(name, BY_OWN)
    rows = src if isinstance(src, RowTensor) else index
    if rows.row_dim != dim:
        refuse(name, "give the dimension that counts rows")
    space = rows.row_space
    found = []
    for one in (index, src):
        at = one.row_dim if isinstance(one, RowTensor) else (dim if one.dim() > dim else 0)
        found.append(local_in(one, space, at, name).narrow(at, 0, space.num_counted))
    return found[0], found[1], space


def _spread(index: torch.Tensor, like: torch.Tensor, dim: int) -> torch.Tensor:
    if index.dim() == like.dim():
        return index
    return index.view([-1 if at == dim else 1 for at in range(like.dim())]).expand_as(like)


def _summed(out: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, space: Any) -> torch.Tensor:
    here = torch.zeros(out.shape, dtype=src.dtype).scatter_add(dim, _spread(index, src, dim), src)
    return here if space.comm.size == 1 else all_sum(space.graph, here)


def _written(func: Any, out: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """The result of the function, or of the one that writes into `out`."""
    return whole_of(local_of(out).copy_(found) if func.__name__.endswith("_") else found)


@handles("scatter_add", "scatter_add_", "index_add", "index_add_")
def scatter_add(func: Any, input: Any, dim: int, index: Any, *args: Any, alpha: float = 1, **named: Any) -> Any:
    (src,) = (*args, *named.values())  # `src` or `source`
    dim = dim % input.dim()
    if isinstance(input, RowTensor) and func.__name__.startswith("index") and dim == input.row_dim == 0:
        put = input.index_put_ if func.__name__.endswith("_") else input.index_put
        return put((index,), src if alpha == 1 else src * alpha, accumulate=True)
    local_index, local_src, space = _local(input, dim, index, src, func.__name__)
    total = _summed(input, dim, local_index, local_src, space)
    return _written(func, input, local_of(input) + total * alpha)


@handles("scatter_reduce", "scatter_reduce_")
def scatter_reduce(
    func: Any, input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    kind = REDUCES.get(reduce)
    if kind is None or (include_self and kind != "sum"):
        refuse(func.__name__, "take sum, mean, amax or amin, with include_self=False")
    dim = dim % input.dim()
    local_index, local_src, space = _local(input, dim, index, src, func.__name__)
    count = _summed(input, dim, local_index, torch.ones_like(local_src), space)
    if kind in ("max", "min"):
        found = _extreme(input, dim, local_index, local_src, space, kind)
    else:
        found = _summed(input, dim, local_index, local_src, space)
        if kind == "mean":
            rounding = None if found.is_floating_point() else "floor"
            found = torch.div(found, count.clamp(min=1), rounding_mode=rounding)
    out = local_of(input)
    return _written(func, out, out + found if include_self else torch.where(count > 0, found, out))


def _extreme(
    out: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, space: Any, which: str
) -> torch.Tensor:
    """Of each group; equal ones share the gradient. Collective: yes, and backward."""
    where, values = _spread(index, src, dim), src.detach()
    top = torch.full(out.shape, no_extreme(src.dtype, which), dtype=src.dtype)
    top = extreme_over(space, top.scatter_reduce(dim, where, values, f"a{which}"), which)
    if not src.requires_grad:
        return top
    best = are_top(values, top.gather(dim, where))
    chosen = torch.where(best, src, torch.zeros_like(src))
    count = _summed(out, dim, index, best.to(src.dtype), space)
    return shared_by_top(_summed(out, dim, index, chosen, space), count.clamp(min=1), top)


@handles("scatter", "scatter_")
def scatter(func: Any, input: Any, dim: int, index: Any, *values: Any, **named: Any) -> Any:
    """Into columns, each rank its own rows: one-hot labels."""
    name, dim = func.__name__, dim % input.dim()
    if not isinstance(input, RowTensor):
        out = input if name.endswith("_") else input.clone()
        return into_ordinary(torch.Tensor.scatter_, out, dim, index, *values, **named)
    if dim == input.row_dim:
        refuse(name, "write x[ids] = values; scatter takes columns, dim=1")

    def local(one: Any) -> Any:
        return local_in(one, input.row_space, input.row_dim, name) if isinstance(one, torch.Tensor) else one

    found = func(input.inner, dim, *map(local, (index, *values)), **{key: local(one) for key, one in named.items()})
    return again(input) if name.endswith("_") else input.like(found)
