"""Rows by mask, by global id, by slice. Each rank gets its share of what a single process would get.

x[mask]          rows where a mask is true: this rank's
x[ids]           rows by global id, in the order of `ids`: each rank has a block of the places, wherever the rows are
x[a:b], x[7]     the same for a range; one row is an ordinary tensor on every rank
x[:, 3]          columns: local
x[ids, columns]  a number of each row
x[mask] = v      written where this rank owns the row
"""

import weakref
from typing import Any

import numpy as np
import torch

from distgnn.errors import InputError
from distgnn.ops.function import constants, version_of
from distgnn.ops.sums import all_sum
from distgnn.rows.align import in_space, local_in, part_of
from distgnn.rows.row_by_row import again
from distgnn.rows.row_tensor import (
    HANDLERS,
    INSTEAD,
    RowTensor,
    gathered,
    handles,
    into_ordinary,
    local_of,
    refuse,
    rows_of,
    whole_of,
)
from distgnn.rows.shapes import flattened
from distgnn.rows.space import Joined, MaskedRows, Share, Space, checked_ids, digest_of

EVERY = slice(None)
WRITTEN_SO = (
    "write x[rows] = values or x[rows, columns] = values, where each is a mask, a range or ids in one dimension"
)
KEPT_MASKS = 8


@handles("__getitem__")
def getitem(func: Any, rows: Any, index: Any) -> Any:
    if not isinstance(rows, RowTensor):
        return _ordinary_by_rows(rows, index)
    index = _complete(index, rows)
    at, place = _row_index(rows, index)
    found = _indexed(rows, index, at, place)
    if isinstance(at, slice | int) and not _is_all(at) and None not in index:
        found.written_back = rows, index  # torch gives a view: what is written into it is written into the rows
    return found


def _indexed(rows: RowTensor, index: tuple[Any, ...], at: Any, place: int) -> Any:
    if _is_all(at):
        found = rows.inner[tuple(map(local_of, index))]
        return rows_of(found, rows.row_space, _new_dim(index, place))
    if _is_mask(at) and at.dim() > 1:
        if len(index) > 1 or at.dim() != rows.dim():
            refuse("__getitem__", "a mask of more than one dimension stands alone and has the shape of the rows")
        return by_mask(flattened(rows), flattened(at) if isinstance(at, RowTensor) else at.reshape(-1))
    others = [one for number, one in enumerate(index) if number != place]
    if any(isinstance(one, torch.Tensor | list | np.ndarray) for one in others):  # x[ids, columns]
        if place != 0 or len(index) != 2 or not isinstance(index[1], torch.Tensor) or index[1].dim() != 1:
            refuse("__getitem__", "give ids of rows and one column each: x[ids, columns]")
        chosen = _by(rows, at)
        columns = local_in(index[1], chosen.row_space, 0, "__getitem__")
        return rows_of(chosen.inner.gather(1, columns[:, None])[:, 0], chosen.row_space)
    before, after = index[:place], index[place + 1 :]
    front = rows_of(rows.inner.movedim(rows.row_dim, 0), rows.row_space)
    chosen = _by(front, at)
    dim = rows.row_dim
    if isinstance(chosen, RowTensor):
        out = chosen
        if chosen.dim() == rows.dim():
            out = rows_of(chosen.inner.movedim(chosen.row_dim, dim), chosen.row_space, dim)
        if all(map(_is_all, (*before, *after))):
            return out
        extra = out.dim() - rows.dim()
        full = (*before, *[EVERY] * (1 + extra), *after)
        return out[full]
    return chosen if not (before or after) else chosen[tuple(map(local_of, (*before, *after)))]


def _complete(index: Any, rows: RowTensor) -> tuple[Any, ...]:
    """The index as a tuple with one entry for each dimension, and None for new ones."""
    index = index if isinstance(index, tuple) else (index,)
    index = tuple(np.asarray(one) if isinstance(one, list | range) else one for one in index)
    index = tuple(torch.from_numpy(one) if isinstance(one, np.ndarray) else one for one in index)
    used = sum(_width(one) for one in index)
    if used > rows.dim():
        raise InputError(f"too many indices for rows of shape {list(rows.shape)}")
    if not any(one is Ellipsis for one in index):
        index = (*index, Ellipsis)
    place = next(number for number, one in enumerate(index) if one is Ellipsis)
    return (*index[:place], *[EVERY] * (rows.dim() - used), *index[place + 1 :])


def _width(one: Any) -> int:
    """Dimensions that an entry takes."""
    if one is None or one is Ellipsis:
        return 0
    return one.dim() if _is_mask(one) else 1


def _is_mask(one: Any) -> bool:
    return isinstance(one, torch.Tensor) and one.dtype in (torch.bool, torch.uint8)


def _row_index(rows: RowTensor, index: tuple[Any, ...]) -> tuple[Any, int]:
    """(the entry that chooses rows, its place in the index)."""
    dim = 0
    for place, one in enumerate(index):
        if one is None:
            continue
        if dim <= rows.row_dim < dim + _width(one):
            return one, place
        dim += _width(one)
    raise InputError(f"rows of shape {list(rows.shape)} cannot be indexed so")


def _is_all(one: Any) -> bool:
    return isinstance(one, slice) and one == EVERY


def _new_dim(index: tuple[Any, ...], place: int) -> int:
    """The dimension of the result that counts rows, where other dimensions are indexed."""
    many = [number for number, one in enumerate(index) if isinstance(one, torch.Tensor) and one.dim() > 0]
    if len(many) > 1 or any(number < place and index[number].dim() > 1 for number in many):
        refuse("__getitem__", "index the columns in one dimension: x[:, columns]")
    return sum(
        not isinstance(one, int) and not (isinstance(one, torch.Tensor) and one.dim() == 0) for one in index[:place]
    )


def _by(rows: RowTensor, at: Any) -> Any:
    """Rows [n, ...] in dimension 0 by one index."""
    if isinstance(at, slice):
        return by_ids(rows, torch.arange(rows.row_space.num_global)[at])
    if isinstance(at, int | np.integer) and not isinstance(at, bool):
        return one_row(rows, int(at))
    if not isinstance(at, torch.Tensor):
        refuse("__getitem__")
    if _is_mask(at):
        return by_mask(rows, at if isinstance(at, RowTensor) else local_of(at))
    if at.dim() == 0:
        return one_row(rows, int(at))
    return by_ids(rows, at)


# --- masks -------------------------------------------------------------------------------------------------------


def by_mask(rows: RowTensor, mask: torch.Tensor) -> RowTensor:
    """Rows where a mask of rows, or an ordinary one of all rows, is true. Collective: where the mask is new."""
    space = masked_by(rows.row_space, mask)
    return rows_of(rows.inner.index_select(0, space.rows), space)


def masked_by(space: Space, mask: torch.Tensor) -> MaskedRows:
    """The rows of a space where a mask is true; the same object for the same mask. Collective: where it is new."""
    version = version_of(local_of(mask))
    for known, then, chosen in space.kept_masks:
        if version is not None and known() is mask and then == version:
            return chosen
    with constants():
        made = MaskedRows(space, local_in(mask, space, 0, "mask").bool())
    if version is not None:
        space.kept_masks = [*space.kept_masks[1 - KEPT_MASKS :], (weakref.ref(mask), version, made)]
    return made


# --- ids ---------------------------------------------------------------------------------------------------------


def by_ids(rows: RowTensor, ids: torch.Tensor) -> RowTensor:
    """Rows by global id. Collective: yes, and backward.

    Ids that all ranks have give a block of their places to each rank; ids that are rows give each rank's own.
    """
    if isinstance(ids, RowTensor):
        return _by_rows_of_ids(rows, ids)
    ids = ids.long()
    if ids.dim() > 1:  # the longest dimension is shared out
        dim = int(np.argmax(ids.shape))
        share = Share(rows.row_space.graph, ids.shape[dim])
        digest_of(rows.row_space, ids.numpy())
        return _by_rows_of_ids(rows, rows_of(share.local_part(ids, dim), share, dim))
    wanted = checked_ids(ids.numpy(), rows.row_space.num_global)
    base = rows.row_space
    agreed, part = digest_of(base, wanted), base.part_at(wanted) if isinstance(base, Joined) else None
    if part is not None:
        return rows_of(rows.inner[part[1]], part[0])
    # As many ids as the space has rows give rows in it, so that permuted vertices stay rows of vertices.
    permuted = len(wanted) == base.num_global and base.num_counted == base.num_local
    space = base if permuted else Share(base.graph, len(wanted))
    return rows_of(base.rows_at(rows.inner, wanted[space.places], agreed), space)


def _by_rows_of_ids(rows: RowTensor, ids: RowTensor) -> RowTensor:
    wanted = checked_ids(ids.inner.reshape(-1).numpy(), rows.row_space.num_global)
    found = rows.row_space.rows_at(rows.inner, wanted)
    return ids.like(found.view(*ids.inner.shape, *rows.shape[1:]))


def one_row(rows: RowTensor, place: int) -> torch.Tensor:
    """One row, an ordinary tensor on every rank. Collective: yes, and backward."""
    space = rows.row_space
    (wanted,) = checked_ids(np.array([place]), space.num_global)
    here = np.flatnonzero(space.places[: space.num_counted] == wanted)
    mine = rows.inner.index_select(0, torch.from_numpy(here)).sum(0, dtype=rows.dtype)
    if rows.dtype == torch.bool:
        mine = mine.long()
    found = mine if space.comm.size == 1 else all_sum(space.graph, mine)
    return whole_of(found.to(rows.dtype))


def _ordinary_by_rows(table: torch.Tensor, index: Any) -> Any:
    """An ordinary tensor indexed by rows: each rank looks up its own. A mask takes this rank's part of the table."""
    table = local_of(table)
    parts: Any = index if isinstance(index, tuple) else (index,)
    rows = [one for one in parts if isinstance(one, RowTensor)]
    if parts[0] is rows[0] and len(parts) == 1 and _is_mask(rows[0]):
        mask = rows[0]
        return by_mask(rows_of(part_of(table, mask.row_space, 0, "mask"), mask.row_space), mask)
    if any(map(_is_mask, rows)) or any(one is None for one in parts):
        refuse("__getitem__", "index an ordinary tensor by rows in its first dimension only")
    space, dim = rows[0].row_space, rows[0].row_dim
    if len(parts) > 1 and any(one.dim() > 1 for one in rows):
        refuse("__getitem__", "index an ordinary tensor by rows of one dimension each")
    of_rows = [isinstance(one, RowTensor) or (isinstance(one, torch.Tensor) and one.dim() == 1) for one in parts]
    local = tuple(
        local_in(one, space, 0, "__getitem__") if here else local_of(one)
        for one, here in zip(parts, of_rows, strict=True)
    )
    leading = sum(isinstance(one, slice) for one in parts[: [isinstance(p, RowTensor) for p in parts].index(True)])
    ids: Any = local[0]
    counts = len(local) == 1 and ids.dim() == 1 and ids.dtype in (torch.int64, torch.int32)
    if counts and len(ids) and int(ids.min()) >= 0:
        return rows_of(table.index_select(0, ids), space, leading + dim)  # whose gradient is the quicker one
    return rows_of(table[local], space, leading + dim)


@handles("gather")
def gather(func: Any, input: Any, dim: int | None, index: Any, *, sparse_grad: bool = False) -> RowTensor:
    if not isinstance(input, RowTensor) or dim is None or dim % input.dim() == input.row_dim:
        refuse(func.__name__, "write x[ids] for rows by id; gather takes columns, dim=1")
    return input.like(input.inner.gather(dim, local_in(index, input.row_space, input.row_dim, func.__name__)))


@handles("masked_select")
def masked_select(func: Any, input: Any, mask: Any) -> torch.Tensor:
    wide: Any = mask.expand(input.shape) if isinstance(mask, RowTensor) else torch.ones_like(input, dtype=torch.bool)
    return flattened(input)[flattened(wide & mask)]


@handles("nonzero", "argwhere")
def nonzero(func: Any, input: RowTensor, *, as_tuple: bool = False) -> Any:
    """The global places of rows that are not 0, an ordinary tensor on every rank. Collective: yes."""
    if input.dim() != 1:
        refuse("nonzero", "ask for places of one column, x[:, 0].nonzero(), or keep the mask")
    space = input.row_space
    here = space.places[: space.num_counted][input.inner[: space.num_counted].bool().numpy()]
    found = torch.from_numpy(np.sort(np.concatenate(space.comm.allgather(here))))
    return (found,) if as_tuple else found[:, None]


# --- writing -----------------------------------------------------------------------------------------------------


@handles("__setitem__")
def setitem(func: Any, rows: Any, index: Any, values: Any) -> None:
    if not isinstance(rows, RowTensor):
        return into_ordinary(func, rows, index, values)
    index = _complete(index, rows)
    at, place = _row_index(rows, index)
    if _is_mask(at) and at.dim() > 1:
        return _fill(rows, at, values)
    _put(rows, index, place, values)
    again(rows)
    return None


def _put(rows: RowTensor, index: tuple[Any, ...], place: int, values: Any, accumulate: bool = False) -> None:
    """Write, or add, values at rows by mask, id or range, and at columns by anything; both by ids are pairs."""
    before = [one for one in index[:place] if isinstance(one, torch.Tensor)]
    if any(one is None or (isinstance(one, torch.Tensor) and one.dim() > 1) for one in index) or (
        before and not _is_all(index[place])
    ):
        refuse("__setitem__", WRITTEN_SO)
    where, chosen = _writable(rows.row_space, index[place])
    columns = list(index[place + 1 :])
    for number, one in enumerate(columns):
        if _is_mask(one) and not isinstance(one, RowTensor) and one.dim() == 1:
            columns[number] = one.nonzero().view(-1)
    many = [isinstance(one, torch.Tensor) and one.dim() == 1 for one in columns]
    at = index[place]
    pairs = isinstance(at, torch.Tensor) and at.dim() > 0 and (len(at) > 1 or at.dtype == torch.bool) and any(many)
    if not pairs and any(many):
        if sum(many) > 1 or (isinstance(where, torch.Tensor) and not many[0]):
            refuse("__setitem__", WRITTEN_SO)
        where = where[:, None] if isinstance(where, torch.Tensor) else where
    if pairs:  # one column for each row
        columns = [_at(one, chosen, 0) if is_many else one for one, is_many in zip(columns, many, strict=True)]
    back = 1 + sum(
        isinstance(one, slice) or (is_many and not pairs) for one, is_many in zip(columns, many, strict=True)
    )
    if isinstance(values, torch.Tensor):
        values = _at(values, chosen, (values.row_dim if isinstance(values, RowTensor) else values.dim() - back))
    local = (*map(local_of, index[:place]), where, *map(local_of, columns))
    if accumulate:
        rows.inner.index_put_(tuple(one for one in local if not _is_all(one)), values, accumulate=True)
    else:
        rows.inner[local] = values


def _at(values: torch.Tensor, chosen: Any, dim: int) -> torch.Tensor:
    """This rank's part of values for rows of a space, or for places of a list: of one for all of them, that one."""
    if isinstance(values, RowTensor):
        if not isinstance(chosen, np.ndarray):
            return in_space(values, chosen).inner
        front = values.inner.movedim(values.row_dim, 0)  # the rows of these places travel to their owners
        return values.row_space.rows_at(front, chosen).movedim(0, values.row_dim)
    values = local_of(values)
    if dim < 0 or values.dim() <= dim or values.shape[dim] == 1:
        return values
    if isinstance(chosen, np.ndarray):
        return values.index_select(dim, torch.from_numpy(chosen))
    return part_of(values, chosen, dim, "__setitem__")


def _writable(space: Space, at: Any) -> tuple[Any, Any]:
    """(local rows to be written, the space of the values, or the places in an ordinary list of values)."""
    if _is_all(at):
        return EVERY, space
    if _is_mask(at):
        chosen = masked_by(space, at if isinstance(at, RowTensor) else local_of(at))
        return chosen.rows, chosen
    if isinstance(at, RowTensor):
        at = gathered(at)
    if isinstance(at, slice):
        ids = np.arange(space.num_global)[at]
    else:
        ids = np.atleast_1d(np.asarray(local_of(at)))
    ids = checked_ids(ids, space.num_global)
    digest_of(space, ids)
    order = np.argsort(space.places, kind="stable")
    spots = np.searchsorted(space.places[order], ids)
    spots = np.minimum(spots, max(len(order) - 1, 0))
    here = (space.places[order][spots] == ids) if len(order) else np.zeros(len(ids), bool)
    return torch.from_numpy(order[spots[here]] if len(order) else np.zeros(0, np.int64)), np.flatnonzero(here)


def _fill(rows: RowTensor, mask: torch.Tensor, values: Any) -> None:
    """x[mask of the shape of x] = a number, or one number for each true entry."""
    if not isinstance(mask, RowTensor):
        mask = rows.like(part_of(local_of(mask), rows.row_space, rows.row_dim, "mask"))
    local = in_space(mask, rows.row_space).inner.bool()
    if isinstance(values, RowTensor):
        values = in_space(values, masked_by(flattened(mask).row_space, flattened(mask))).inner
    elif isinstance(values, torch.Tensor) and values.numel() != 1:
        refuse("__setitem__", "give one number, or rows chosen by the same mask")
    rows.inner[local] = values
    again(rows)


@handles("index_fill_", "index_fill", "index_copy_", "index_copy")
def index_write(func: Any, input: Any, dim: int, index: Any, values: Any) -> Any:
    out = input if func.__name__.endswith("_") else input.clone()
    out[(EVERY,) * (dim % input.dim()) + (index,)] = values
    return out


@handles("index_put", "index_put_")
def index_put(func: Any, input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = input if func.__name__.endswith("_") else input.clone()
    if not isinstance(out, RowTensor):
        return into_ordinary(torch.Tensor.index_put_, out, indices, values, accumulate)
    if not accumulate:
        out[tuple(indices)] = values
        return out
    index = _complete(tuple(indices), out)
    if out.row_dim != 0:
        refuse(func.__name__, "the first dimension of rows counts them: x.index_put_((ids,), values, accumulate=True)")
    _put(out, index, 0, values, accumulate=True)
    return again(out)


HANDLERS["index_select"] = lambda func, input, dim, index: input[(EVERY,) * (dim % input.dim()) + (index,)]
HANDLERS["take_along_dim"] = lambda func, input, indices, dim=None: gather(func, input, dim, indices)
INSTEAD.update(dict.fromkeys(("masked_scatter", "put"), "write x[mask] = values"))
