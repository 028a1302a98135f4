"""Other shapes of the same rows: where does the dimension that counts them go?"""

import math
from typing import Any

import torch

from distgnn.errors import InputError
from distgnn.rows.align import Aligned
from distgnn.rows.row_tensor import ANYWHERE, HANDLERS, INSTEAD, RowTensor, handles, local_of, refuse, rows_of
from distgnn.rows.space import Flat, Joined, Share

MERGED = "rows of all ranks cannot be merged with a dimension before them, or split: keep the first dimension as it is"

FEW_ROWS = 1000  # that may be taken one by one: each is a sum over ranks


def _sizes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
    """Sizes or dimensions, given one by one, as a sequence, by name, or as those of another tensor."""
    found = (*args, *kwargs.values())
    if len(found) == 1 and isinstance(found[0], torch.Tensor) and found[0].dim():
        found = (list(found[0].shape),)
    if len(found) == 1 and isinstance(found[0], list | tuple):
        found = tuple(found[0])
    return [int(one) for one in found]


@handles("view", "reshape", "_reshape_alias", "view_as", "reshape_as")
def view(func: Any, input: RowTensor, *shape: Any, **named: Any) -> RowTensor:
    """Another shape; the rows stay whole, or are flattened with what is behind them."""
    dtype = named.get("dtype", shape[0] if shape else None)
    if isinstance(dtype, torch.dtype):
        return input.like(func(input.inner, dtype))
    return reshaped(input, _sizes(shape, named))


@handles("ravel", "flatten")
def flatten(func: Any, input: RowTensor, start_dim: int = 0, end_dim: int = -1) -> RowTensor:
    """Dimensions start to end as one."""
    first, last, size = start_dim % input.dim(), end_dim % input.dim(), list(input.shape)
    return reshaped(input, [*size[:first], math.prod(size[first : last + 1]), *size[last + 1 :]])


@handles("unflatten")
def unflatten(func: Any, input: RowTensor, dim: int, sizes: Any) -> RowTensor:
    dim, sizes = dim % input.dim(), list(sizes)
    if -1 in sizes:
        others = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = input.shape[dim] // max(others, 1)
    return reshaped(input, [*input.shape[:dim], *sizes, *input.shape[dim + 1 :]])


def flattened(rows: RowTensor) -> RowTensor:
    """All numbers in a row."""
    return reshaped(rows, [-1])


def reshaped(rows: RowTensor, size: list[int]) -> RowTensor:
    """Rows in another shape. Raises: InputError where rows would not stay rows."""
    old, dim, space = list(rows.shape), rows.row_dim, rows.row_space
    if -1 in size:
        rest = math.prod(number for number in size if number != -1)
        if rest:
            size[size.index(-1)] = math.prod(old) // rest
    if math.prod(size) != math.prod(old):
        raise InputError(f"rows of shape {old} cannot take the shape {size}: the numbers of values differ")
    before = math.prod(old[:dim])
    for kept in [space, space.base] if isinstance(space, Flat) and before == 1 else [space]:  # as they are, or back
        for place, number in enumerate(size):
            if number == kept.num_global and math.prod(size[:place]) == before:
                local = [*size[:place], kept.num_local, *size[place + 1 :]]
                return rows_of(rows.inner.reshape(local), kept, place)
    width = math.prod(old[dim + 1 :])
    if before == 1 and size and math.prod(size[:-1]) == 1 and size[-1] == space.num_global * width:
        flat = Flat(space, width)
        return rows_of(rows.inner.reshape([*size[:-1], flat.num_local]), flat, len(size) - 1)
    times = size[0] // space.num_global if size and space.num_global and before == 1 else 0
    if times > 1 and times * space.num_global == size[0] and width % times == 0:  # each row as several shorter ones
        flat = Flat(space, times)
        return rows_of(rows.inner.reshape([flat.num_local, *size[1:]]), flat)
    raise InputError(f"rows of shape {old} cannot take the shape {size}: {MERGED}")


# --- dimensions of 1, other orders --------------------------------------------------------------------------------


@handles("unsqueeze", "t", "T", "mT", "H", "mH", "adjoint", "transpose", "swapaxes", "swapdims")
@handles("permute", "movedim", "moveaxis")
def moved(func: Any, input: RowTensor, *args: Any, **kwargs: Any) -> RowTensor:
    """Torch says of a tensor without numbers where the dimension of rows goes."""
    marks = torch.empty([2 if dim == input.row_dim else 1 for dim in range(input.dim())])
    place = list(func(marks, *args, **kwargs).shape).index(2)
    return rows_of(func(input.inner, *args, **kwargs), input.row_space, place)


@handles("squeeze")
def squeeze(func: Any, input: RowTensor, *dim: Any, **named: Any) -> RowTensor:
    wanted = [one % input.dim() for one in _sizes(dim, named)] or list(range(input.dim()))
    dims = [one for one in wanted if one != input.row_dim and input.inner.shape[one] == 1]
    if input.row_dim in wanted and input.shape[input.row_dim] == 1:
        refuse("squeeze", "the only row is on one rank: write x[0]")
    before = sum(one < input.row_dim for one in dims)
    return rows_of(input.inner.squeeze(tuple(dims)), input.row_space, input.row_dim - before)


@handles("expand", "broadcast_to")
def expand(func: Any, input: RowTensor, *sizes: Any, **named: Any) -> RowTensor:
    size = _sizes(sizes, named)
    dim = input.row_dim + len(size) - input.dim()
    if size[dim] not in (-1, input.row_space.num_global):
        raise InputError(f"rows of shape {list(input.shape)} cannot be expanded to {size}")
    return rows_of(input.inner.expand([*size[:dim], input.row_space.num_local, *size[dim + 1 :]]), input.row_space, dim)


@handles("expand_as")
def expand_as(func: Any, tensor: torch.Tensor, other: torch.Tensor) -> RowTensor:
    """An ordinary tensor becomes rows."""
    if isinstance(tensor, RowTensor):
        return tensor.expand(other.shape)  # type: ignore[return-value]
    together = Aligned("expand", (tensor, other))
    return together.rows(together.local(tensor).expand(together.local(other).shape))


@handles("repeat", "tile")
def repeat(func: Any, input: RowTensor, *sizes: Any, **named: Any) -> torch.Tensor:
    times = _sizes(sizes, named)
    times = [1] * (input.dim() - len(times)) + times
    dim = input.row_dim + len(times) - input.dim()
    if times[dim] != 1:
        return torch.cat([input.repeat([*times[:dim], 1, *times[dim + 1 :]])] * times[dim], dim)
    return rows_of(input.inner.repeat(times), input.row_space, dim)


@handles("repeat_interleave")
def repeat_interleave(func: Any, input: RowTensor, repeats: Any, dim: int | None = None) -> RowTensor:
    if dim is None or dim % input.dim() == input.row_dim or isinstance(repeats, torch.Tensor):
        refuse("repeat_interleave", "rows of all ranks cannot be repeated one by one: write x[ids]")
    return input.like(input.inner.repeat_interleave(repeats, dim))


# --- together and apart -------------------------------------------------------------------------------------------


@handles("cat", "concat", "concatenate", "hstack", "column_stack", "vstack", "row_stack")
def cat(func: Any, tensors: Any, dim: int = 0, *, axis: int | None = None) -> torch.Tensor:
    """Columns beside each other; rows one after the other make a space of both."""
    tensors, dim = list(tensors), dim if axis is None else axis
    if func.__name__ in ("hstack", "column_stack"):
        if func.__name__ == "column_stack":
            tensors = [one[:, None] if one.dim() == 1 else one for one in tensors]
        dim = 0 if tensors[0].dim() == 1 else 1
    tensors = [one for one in tensors if tuple(one.shape) != (0,)]
    dim = dim % tensors[0].dim()
    together = Aligned("cat", tensors)
    if dim != tensors[0].dim() - together.back:
        return together.rows(torch.cat([together.local(one) for one in tensors], dim))
    for number, one in enumerate(tensors):
        if not isinstance(one, RowTensor):  # rows in blocks
            share = Share(together.space.graph, one.shape[dim])
            tensors[number] = rows_of(share.local_part(local_of(one), dim), share, dim)
    if len(tensors) == 1:
        return tensors[0]
    joined = Joined([one.row_space for one in tensors])
    return rows_of(torch.cat([one.inner for one in tensors], dim), joined, dim)


@handles("stack")
def stack(func: Any, tensors: Any, dim: int = 0) -> RowTensor:
    dim = dim % (tensors[0].dim() + 1)
    together = Aligned("stack", tensors)
    row_dim = tensors[0].dim() - together.back
    found = torch.stack([together.local(one) for one in tensors], dim)
    return rows_of(found, together.space, row_dim + (dim <= row_dim))


@handles("split", "chunk", "tensor_split", "split_with_sizes", "unsafe_split", "unsafe_chunk")
def split(func: Any, rows: RowTensor, *sizes: Any, dim: int = 0, **named: Any) -> tuple[torch.Tensor, ...]:
    sizes, dim = sizes[:1], (sizes[1] if len(sizes) > 1 else dim) % rows.dim()
    if dim != rows.row_dim:
        return tuple(rows.like(one) for one in func(rows.inner, *sizes, dim=dim, **named))
    blocks = func(torch.arange(rows.shape[dim]), *sizes, **named)
    return tuple(rows.index_select(dim, block) for block in blocks)


@handles("unbind")
def unbind(func: Any, input: RowTensor, dim: int = 0) -> tuple[RowTensor, ...]:
    dim = dim % input.dim()
    if dim == input.row_dim:
        if input.shape[dim] > FEW_ROWS:
            refuse("unbind", f"more than {FEW_ROWS} rows are not taken one by one: {ANYWHERE}")
        return tuple(input.select(dim, place) for place in range(input.shape[dim]))  # type: ignore[misc]
    row_dim = input.row_dim - (dim < input.row_dim)
    return tuple(rows_of(one, input.row_space, row_dim) for one in input.inner.unbind(dim))


@handles("narrow")
def narrow(func: Any, input: RowTensor, dim: int, start: Any, length: int) -> torch.Tensor:
    dim, start = dim % input.dim(), int(start)
    start = start % input.shape[dim] if start < 0 else start
    return input[(slice(None),) * dim + (slice(start, start + int(length)),)]


@handles("broadcast_tensors")
def broadcast_tensors(func: Any, *tensors: Any) -> tuple[RowTensor, ...]:
    tensors = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    together = Aligned("broadcast_tensors", tensors)
    return tuple(together.rows(one) for one in torch.broadcast_tensors(*map(together.local, tensors)))


HANDLERS["select"] = lambda func, input, dim, index: input[(slice(None),) * (dim % input.dim()) + (int(index),)]
PAIRS_OF_ROWS = "it makes pairs of rows of all ranks: take the pairs that are needed, rows[ids]"
INSTEAD.update(dict.fromkeys(("meshgrid", "cartesian_prod", "combinations", "block_diag"), PAIRS_OF_ROWS))
INSTEAD["dstack"] = "write torch.stack"
INSTEAD.update({name: f"write x = x.{name}(...)" for name in ("squeeze", "unsqueeze", "t", "transpose")})
