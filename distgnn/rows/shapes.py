"""Other shapes of the same rows: where does the dimension that counts them go?"""

from collections.abc import Sequence
from typing import Any

import torch

from distgnn.errors import InputError
from distgnn.rows.align import Aligned
from distgnn.rows.row_tensor import HANDLERS, RowTensor, handles, local_of, refuse, rows_of
from distgnn.rows.space import Flat, Joined, Share, Space

MERGED = "rows of all ranks cannot be merged with a dimension before them, or split: keep the first dimension as it is"


def _sizes(args: tuple[Any, ...], kwargs: dict[str, Any], *names: str) -> list[int]:
    """Sizes or dimensions, given one by one or as a sequence."""
    for name in names:
        if name in kwargs:
            args = (kwargs[name],)
    if len(args) == 1 and isinstance(args[0], list | tuple):
        args = tuple(args[0])
    return [int(one) for one in args]


@handles("view", "reshape", "_reshape_alias")
def view(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Another shape; the rows stay whole, or are flattened with what is behind them."""
    rows, rest = args[0], args[1:]
    if rest and isinstance(rest[0], torch.dtype):
        return rows.like(func(rows.inner, rest[0]))
    return reshaped(rows, _sizes(rest, kwargs, "shape", "size"))


@handles("view_as", "reshape_as")
def view_as(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return reshaped(args[0], list(args[1].shape))


@handles("ravel", "flatten")
def flatten(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Dimensions start to end as one."""
    rows = args[0]
    given = dict(zip(("start_dim", "end_dim"), args[1:], strict=False)) | kwargs
    first, last = given.get("start_dim", 0) % rows.dim(), given.get("end_dim", -1) % rows.dim()
    size = list(rows.shape)
    return reshaped(rows, [*size[:first], _count(size[first : last + 1]), *size[last + 1 :]])


@handles("unflatten")
def unflatten(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("dim", "sizes"), args[1:], strict=False)) | kwargs
    rows, dim = args[0], given["dim"] % args[0].dim()
    sizes = list(given["sizes"])
    if -1 in sizes:
        others = _count([size for size in sizes if size != -1])
        sizes[sizes.index(-1)] = rows.shape[dim] // max(others, 1)
    return reshaped(rows, [*rows.shape[:dim], *sizes, *rows.shape[dim + 1 :]])


def flattened(rows: RowTensor) -> RowTensor:
    """All numbers in a row."""
    return reshaped(rows, [-1])


def _count(sizes: Sequence[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def reshaped(rows: RowTensor, size: list[int]) -> RowTensor:
    """Rows in another shape. Raises: InputError where rows would not stay rows."""
    old, dim, space = list(rows.shape), rows.row_dim, rows.row_space
    if -1 in size:
        rest = _count([number for number in size if number != -1])
        if rest:
            size[size.index(-1)] = _count(old) // rest
    if _count(size) != _count(old):
        raise InputError(f"rows of shape {old} cannot take the shape {size}: the numbers of values differ")
    before = _count(old[:dim])
    for place, number in enumerate(size):  # the rows as they are
        if number == space.num_global and _count(size[:place]) == before:
            local = [*size[:place], space.num_local, *size[place + 1 :]]
            return rows_of(rows.inner.reshape(local), space, place)
    width = _count(old[dim + 1 :])
    if before == 1 and size and _count(size[:-1]) == 1 and size[-1] == space.num_global * width:
        flat = Flat(space, width)
        return rows_of(rows.inner.reshape([*size[:-1], flat.num_local]), flat, len(size) - 1)
    times = size[0] // space.num_global if size and space.num_global and before == 1 else 0
    if times > 1 and times * space.num_global == size[0] and width % times == 0:  # each row as several shorter ones
        flat = Flat(space, times)
        return rows_of(rows.inner.reshape([flat.num_local, *size[1:]]), flat)
    if isinstance(space, Flat):  # back to rows
        for place, number in enumerate(size):
            if number == space.base.num_global and _count(size[:place]) == before == 1:
                local = [*size[:place], space.base.num_local, *size[place + 1 :]]
                return rows_of(rows.inner.reshape(local), space.base, place)
    raise InputError(f"rows of shape {old} cannot take the shape {size}: {MERGED}")


# --- dimensions of 1, other orders --------------------------------------------------------------------------------


@handles("unsqueeze")
def unsqueeze(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows, dim = args[0], kwargs.get("dim", args[1] if len(args) > 1 else 0)
    dim = dim % (rows.dim() + 1)
    return rows_of(rows.inner.unsqueeze(dim), rows.row_space, rows.row_dim + (dim <= rows.row_dim))


@handles("squeeze")
def squeeze(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    given = _sizes(args[1:], kwargs, "dim")
    wanted = [dim % rows.dim() for dim in given] if given else list(range(rows.dim()))
    dims = [dim for dim in wanted if dim != rows.row_dim and rows.inner.shape[dim] == 1]
    if rows.row_dim in wanted and rows.shape[rows.row_dim] == 1:
        refuse("squeeze", "the only row is on one rank: write x[0]")
    before = sum(dim < rows.row_dim for dim in dims)
    return rows_of(rows.inner.squeeze(tuple(dims)), rows.row_space, rows.row_dim - before)


@handles("t", "T", "mT", "H", "mH", "adjoint", "transpose", "swapaxes", "swapdims", "numpy_T")
def transpose(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    if rows.dim() < 2:
        return rows
    if len(args) > 1 or kwargs:
        names = ("dim0", "dim1") if "dim0" in kwargs or "dim1" in kwargs else ("axis0", "axis1")
        given = dict(zip(names, args[1:], strict=False)) | kwargs
        first, second = (dim % rows.dim() for dim in given.values())
    else:
        first, second = rows.dim() - 2, rows.dim() - 1
    there = {first: second, second: first}.get(rows.row_dim, rows.row_dim)
    return rows_of(rows.inner.transpose(first, second), rows.row_space, there)


@handles("permute", "movedim", "moveaxis")
def permute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    marks = torch.empty([2 if dim == rows.row_dim else 1 for dim in range(rows.dim())])
    moved = func(marks, *args[1:], **kwargs)
    return rows_of(func(rows.inner, *args[1:], **kwargs), rows.row_space, list(moved.shape).index(2))


@handles("expand", "expand_as", "broadcast_to")
def expand(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Dimensions of 1 repeated; an ordinary tensor `expand_as` rows becomes rows."""
    rows = args[0]
    size = list(args[1].shape) if func.__name__ == "expand_as" else _sizes(args[1:], kwargs, "size")
    if not isinstance(rows, RowTensor):
        together = Aligned("expand", args)
        local = list(args[1].inner.shape)
        return together.rows(together.local(rows).expand(local))
    more = len(size) - rows.dim()
    dim = rows.row_dim + more
    if size[dim] not in (-1, rows.row_space.num_global):
        raise InputError(f"rows of shape {list(rows.shape)} cannot be expanded to {size}")
    return rows_of(rows.inner.expand([*size[:dim], rows.row_space.num_local, *size[dim + 1 :]]), rows.row_space, dim)


@handles("repeat", "tile")
def repeat(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    times = _sizes(args[1:], kwargs, "repeats", "dims")
    times = [1] * (rows.dim() - len(times)) + times
    dim = rows.row_dim + len(times) - rows.dim()
    if times[dim] != 1:
        return torch.cat([rows.repeat([*times[:dim], 1, *times[dim + 1 :]])] * times[dim], dim)
    return rows_of(rows.inner.repeat(times), rows.row_space, dim)


@handles("repeat_interleave")
def repeat_interleave(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("repeats", "dim"), args[1:], strict=False)) | kwargs
    rows, dim = args[0], given.get("dim")
    if dim is None or dim % rows.dim() == rows.row_dim or isinstance(given["repeats"], torch.Tensor):
        refuse("repeat_interleave", "rows of all ranks cannot be repeated one by one: write x[ids]")
    return rows.like(rows.inner.repeat_interleave(given["repeats"], dim))


# --- together and apart -------------------------------------------------------------------------------------------


@handles("cat", "concat", "concatenate", "hstack", "column_stack", "vstack", "row_stack")
def cat(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Columns beside each other; rows one after the other make a space of both."""
    tensors = list(kwargs.get("tensors", args[0] if args else ()))
    dim = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else 0))
    if func.__name__ in ("hstack", "column_stack"):
        if func.__name__ == "column_stack":
            tensors = [one[:, None] if one.dim() == 1 else one for one in tensors]
        dim = 0 if tensors[0].dim() == 1 else 1
    tensors = [one for one in tensors if tuple(one.shape) != (0,)]
    dim = dim % tensors[0].dim()
    together = Aligned("cat", tensors)
    if dim != tensors[0].dim() - together.back:
        return together.rows(torch.cat([together.local(one) for one in tensors], dim))
    ordinary = [one for one in tensors if not isinstance(one, RowTensor)]
    if ordinary:
        return torch.cat([_as_share(one, together.space, dim) for one in tensors], dim)
    if len(tensors) == 1:
        return tensors[0]
    joined = Joined([one.row_space for one in tensors])
    return rows_of(torch.cat([one.inner for one in tensors], dim), joined, dim)


def _as_share(one: Any, like: Space, dim: int) -> RowTensor:
    """An ordinary tensor as rows in blocks."""
    if isinstance(one, RowTensor):
        return one
    share = Share(like.graph, one.shape[dim])
    return rows_of(share.local_part(local_of(one), dim), share, dim)


@handles("stack", "dstack")
def stack(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors = list(kwargs.get("tensors", args[0] if args else ()))
    if func.__name__ == "dstack":
        refuse("dstack", "write torch.stack")
    dim = kwargs.get("dim", args[1] if len(args) > 1 else 0) % (tensors[0].dim() + 1)
    together = Aligned("stack", tensors)
    row_dim = tensors[0].dim() - together.back
    found = torch.stack([together.local(one) for one in tensors], dim)
    return rows_of(found, together.space, row_dim + (dim <= row_dim))


@handles("split", "chunk", "tensor_split", "split_with_sizes", "unsafe_split", "unsafe_chunk")
def split(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    dim = kwargs.get("dim", args[2] if len(args) > 2 else 0) % rows.dim()
    if dim != rows.row_dim:
        return tuple(rows.like(one) for one in func(rows.inner, *args[1:], **kwargs))
    stand_in = torch.arange(rows.shape[dim])
    options = {name: value for name, value in kwargs.items() if name != "dim"}
    blocks = func(stand_in, *args[1:2], **options)
    return tuple(rows[(slice(None),) * dim + (block,)] for block in blocks)


@handles("unbind")
def unbind(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows = args[0]
    dim = kwargs.get("dim", args[1] if len(args) > 1 else 0) % rows.dim()
    if dim == rows.row_dim:
        refuse("unbind")
    return tuple(rows_of(one, rows.row_space, rows.row_dim - (dim < rows.row_dim)) for one in rows.inner.unbind(dim))


@handles("narrow")
def narrow(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("dim", "start", "length"), args[1:], strict=False)) | kwargs
    rows, dim = args[0], given["dim"] % args[0].dim()
    start, length = int(given["start"]), int(given["length"])
    start = start % rows.shape[dim] if start < 0 else start
    return rows[(slice(None),) * dim + (slice(start, start + length),)]


@handles("select")
def select(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("dim", "index"), args[1:], strict=False)) | kwargs
    return args[0][(slice(None),) * (given["dim"] % args[0].dim()) + (int(given["index"]),)]


@handles("broadcast_tensors")
def broadcast_tensors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    together = Aligned("broadcast_tensors", tensors)
    return tuple(together.rows(one) for one in torch.broadcast_tensors(*map(together.local, tensors)))


@handles("meshgrid", "cartesian_prod", "combinations", "block_diag")
def pairs_of_rows(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    refuse(func.__name__, "it makes pairs of rows of all ranks: take the pairs that are needed, rows[ids]")


for _name, _plain in {"squeeze_": "squeeze", "unsqueeze_": "unsqueeze", "t_": "t", "transpose_": "transpose"}.items():

    def _refuse_in_place(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], plain: str = _plain) -> Any:
        refuse(func.__name__, f"write x = x.{plain}(...)")

    HANDLERS[_name] = _refuse_in_place
