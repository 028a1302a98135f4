"""ArcBlocks: rows of arcs that are never whole. They are made a block at a time, where they are reduced.

    m = x[row] + lin(edge_attr)     recorded: how the rows at some arcs are made
    sum over the arcs of each v     block by block: rows of some arcs, added at their targets, forgotten

Without gradients only. A function of torch that treats each arc by itself is recorded; any other one gets all rows, as
an ordinary tensor, which is as right and needs the memory. So a function that is missing here costs room, no number.

Legend: M arcs in an order, D width, `take(places [m]) -> [m, …]`: the rows at some arcs.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from distgnn import kernels
from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.function import is_same, version_of

Take = Callable[[torch.Tensor], torch.Tensor]
LEAST_ARCS = 1 << 16  # of a rank; the rows of fewer are made at once
BLOCK_BYTES = 1 << 25  # of the rows of a block, at most
BLOCK_ARCS = 1 << 15
ELEMENTWISE: set[str] = set()  # filled by rows/row_by_row.py
METADATA: set[str] = set()  # filled by rows/row_tensor.py
OWN_METADATA = {"requires_grad", "is_leaf", "grad_fn", "_is_view", "_version", "retains_grad", "output_nr", "__len__"}
KEPT = {"contiguous", "detach", "cpu", "alias", "requires_grad_"}
CASTS = set("to type type_as float double half bfloat16 long int short bool".split())
RESHAPES = set("view reshape unsqueeze squeeze flatten unflatten view_as reshape_as".split())
OVER_DIMS = set(
    """sum mean std var norm vector_norm amax amin argmax argmin all any logsumexp prod softmax log_softmax softmin
    normalize cumsum cumprod""".split()
)
OF_FIRST = {"linear", "embedding", "layer_norm", "rms_norm"}
PRODUCTS = {"matmul", "__matmul__", "bmm", "mm"}
WRITTEN = (
    "rows were written to in place after a message, or a view, was made of them and before it was aggregated: write "
    "out of place"
)


class ArcBlocks(torch.Tensor):
    """Rows of M arcs without data.

    Attributes: take: gives the rows at some places; widest: bytes of a row, here or on the way; views: these rows, and
        others that show the same numbers.
    """

    take: Take  # type: ignore[assignment]  # in place of the function of that name
    widest: int
    views: "list[weakref.ref[torch.Tensor]]"
    origin = 0  # as that of rows

    @classmethod
    def of(
        cls, size: Sequence[int], dtype: torch.dtype, take: Take, made_of: Iterable[Any] = (), view: bool = False
    ) -> "ArcBlocks":
        made: Any = torch.Tensor._make_wrapper_subclass(cls, torch.Size(size), dtype=dtype)
        made.take, made.views = take, next(iter(made_of)).views if view else []
        made.views.append(weakref.ref(made))
        own = torch.Size(size[1:]).numel() * dtype.itemsize
        made.widest = max([own, *(one.widest for one in made_of if isinstance(one, ArcBlocks))])
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for kind in types:
            if getattr(kind, "stands_for_arcs", False) or getattr(kind, "knows_rows", False):
                return kind.__torch_function__(func, types, args, kwargs)
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        name = func.__self__.__name__ if name == "__get__" else name
        if name in METADATA or name in OWN_METADATA:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if (name[-1:] == "_" and name[-2:] != "__") or name in ("__setitem__", "__set__") or name.startswith("__i"):
            if name not in KEPT and name != "__invert__" and isinstance(args[0], ArcBlocks):
                return _in_place(func, args, kwargs)
        found = _recorded(func, name, args, kwargs)
        if found is not None:
            return found
        args, kwargs = tree_map_only(ArcBlocks, whole_rows, (args, kwargs))
        return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        args, kwargs = tree_map_only(ArcBlocks, whole_rows, (args, kwargs or {}))
        return func(*args, **kwargs)

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"ArcBlocks({list(self.shape)}, {self.dtype})"


def whole_rows(rows: torch.Tensor) -> torch.Tensor:
    """All rows as an ordinary tensor; any other tensor is itself."""
    if not isinstance(rows, ArcBlocks):
        return rows
    out = torch.empty(rows.shape, dtype=rows.dtype)
    step = rows_of_block(rows)
    for first in range(0, len(rows), step):
        places = torch.arange(first, min(first + step, len(rows)))
        out[first : first + step] = rows.take(places)
    return out


def rows_of_block(rows: ArcBlocks) -> int:
    return max(1, min(BLOCK_ARCS, BLOCK_BYTES // max(rows.widest, 1)))


def leaf(rows: torch.Tensor) -> ArcBlocks:
    """Rows that are there, as on a mapped file: what is made of them is made in blocks."""
    return ArcBlocks.of(rows.shape, rows.dtype, _checked(rows))


def rows_by_end(copies: np.ndarray, ends: np.ndarray, size: Sequence[int]) -> ArcBlocks:
    """The row of a copy at one end of each arc, [M, …]. Args: copies [C, D]; ends [M]; size: of a row."""
    rows = torch.from_numpy(copies).view(len(copies), *size)

    def take(places: torch.Tensor) -> torch.Tensor:
        return rows[torch.from_numpy(ends[places.numpy()]).long()]

    return ArcBlocks.of((len(ends), *size), rows.dtype, take)


def gathered_rows(owned: torch.Tensor, halos: torch.Tensor, ends: np.ndarray) -> ArcBlocks:
    """The row at one end of each arc. Args: owned [O, D], halos [S, D]; ends [M], rows of both, owned ones first."""
    from_owned, from_halos, own = _checked(owned), _checked(halos), len(owned)

    def take(places: torch.Tensor) -> torch.Tensor:
        at = torch.from_numpy(ends[places.numpy()]).long()
        if not len(halos):
            return from_owned(at)
        out, far = owned.new_empty(len(at), owned.shape[1]), at >= own
        out[~far], out[far] = from_owned(at[~far]), from_halos(at[far] - own)
        return out

    return ArcBlocks.of((len(ends), owned.shape[1]), owned.dtype, take)


def _checked(rows: torch.Tensor) -> Take:
    """Rows by place, unless somebody has written to them since."""
    version = version_of(rows)

    def take(places: torch.Tensor) -> torch.Tensor:
        if not is_same(rows, version):
            raise on_all_ranks(InputError(WRITTEN))
        return rows.index_select(0, places)

    return take


# --- functions that treat each arc by itself ---------------------------------------------------------------------


def _recorded(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function gives, unmade; None where it does not treat each arc by itself."""
    rows: Any = args[0] if args and isinstance(args[0], ArcBlocks) else None
    if rows is not None and name in KEPT:
        return rows
    if rows is not None and name in ("dropout", "feature_dropout", "alpha_dropout"):
        training = kwargs.get("training", args[2] if len(args) > 2 else True)
        return None if training else rows
    if name in ("cat", "concat", "concatenate", "stack"):
        return _joined(func, name, args, kwargs)
    if rows is not None and name in ("__getitem__", "index_select"):
        index = args[1] if name == "__getitem__" else (args[2] if len(args) == 3 and args[1] == 0 else None)
        return _indexed(rows, index)
    meta = _on_meta(func, args, kwargs)
    if name in SEVERAL and rows is not None and meta is not None and _stays_in_rows(name, rows, args, kwargs):
        return tuple(_part(func, rows, place, one, args[1:], kwargs) for place, one in enumerate(meta))
    if not isinstance(meta, torch.Tensor) or not meta.dim():
        return None
    size = tuple(meta.shape[1:])
    if name in ELEMENTWISE or name == "where":
        return _rowwise(func, meta, args, kwargs)
    if rows is None or meta.shape[0] != len(rows):
        return None
    if name in CASTS:
        return rows if meta.dtype == rows.dtype else _of_one(rows, meta, lambda one: one.to(meta.dtype))
    if name == "clone":
        return _of_one(rows, meta, lambda one: one)
    if name in RESHAPES and meta.numel() == rows.numel():
        return _of_one(rows, meta, lambda one: one.reshape(len(one), *size), view=True)
    if name in ("expand", "expand_as", "broadcast_to") and meta.dim() == rows.dim():
        return _of_one(rows, meta, lambda one: one.expand(len(one), *size), view=True)
    if _stays_in_rows(name, rows, args, kwargs):
        rest = args[1:]
        return _of_one(rows, meta, lambda one: func(one, *rest, **kwargs), view=name in MOVES)
    if name in PRODUCTS and len(args) == 2 and not kwargs:
        return _rowwise(func, meta, args, {}, first_only=args[1].dim() < 3)
    return None


def _part(func: Any, rows: ArcBlocks, place: int, meta: torch.Tensor, args: Any, kwargs: dict[str, Any]) -> ArcBlocks:
    return _of_one(rows, meta, lambda one: func(one, *args, **kwargs)[place], view=True)


SEVERAL = {"chunk", "split", "unbind"}
MOVES = {"transpose", "swapaxes", "permute", "movedim"}


def _stays_in_rows(name: str, rows: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Does a function of one tensor of rows leave its first dimension alone?"""
    others = [one for one in tree_leaves((args[1:], kwargs)) if isinstance(one, ArcBlocks)]
    if others:
        return False
    if name in MOVES:
        dims = [one for one in tree_leaves((args[1:], kwargs)) if isinstance(one, int)]
        dims = dims[1:] if name == "permute" and dims[:1] == [0] else dims
        if name == "movedim" and [dim % rows.dim() for dim in dims] == [0, 0]:
            return True
        return bool(dims) and all(dim % rows.dim() for dim in dims)
    if name == "repeat":
        times = tree_leaves(args[1:])
        return len(times) == rows.dim() and times[0] == 1
    if name in OVER_DIMS or name in SEVERAL:
        place = 2 if name in ("norm", "vector_norm", "normalize", "chunk", "split") else 1
        given = kwargs.get("dim", args[place] if len(args) > place else None)
        given = 1 if given is None and name == "normalize" else given
        given = [given] if isinstance(given, int) and not isinstance(given, bool) else given
        return isinstance(given, list | tuple) and bool(given) and all(dim % rows.dim() for dim in given)
    if name in ("layer_norm", "rms_norm"):
        return len(kwargs.get("normalized_shape", args[1] if len(args) > 1 else ())) < rows.dim()
    return name in OF_FIRST and (name != "linear" or rows.dim() > 1)


def _of_one(rows: ArcBlocks, meta: torch.Tensor, change: Take, view: bool = False) -> ArcBlocks:
    take = rows.take
    return ArcBlocks.of(meta.shape, meta.dtype, lambda places: change(take(places)), (rows,), view)


def _on_meta(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function gives without numbers: shape and dtype."""

    def bare(one: torch.Tensor) -> torch.Tensor:
        return torch.empty(one.shape, dtype=one.dtype, device="meta")

    try:
        given, named = tree_map_only(torch.Tensor, bare, (args, kwargs))
        return func(*given, **named)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
        return None  # where the function itself fails it says so


def _rowwise(
    func: Any, meta: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], first_only: bool = False
) -> ArcBlocks | None:
    """A function of rows, and of ordinary tensors with a row of each arc (not with first_only) or with one for all."""
    every = tree_leaves((args, kwargs))
    mine = [one for one in every if isinstance(one, ArcBlocks)]
    count = len(mine[0])
    if meta.shape[0] != count or any(one.dim() != meta.dim() or len(one) != count for one in mine):
        return None
    if first_only and (len(mine) > 1 or not isinstance(args[0], ArcBlocks) or meta.dim() < 2):
        return None

    def way(one: Any) -> Any:
        if isinstance(one, ArcBlocks):
            return _Taken(one.take)
        if isinstance(one, torch.Tensor) and one.dim() == meta.dim() and len(one) == count and not first_only:
            return _Taken(_checked(one))
        return one

    given, named = tree_map_only(torch.Tensor, way, (args, kwargs))

    def take(places: torch.Tensor) -> torch.Tensor:
        some, by_name = tree_map_only(_Taken, lambda one: one.take(places), (given, named))
        return func(*some, **by_name)

    return ArcBlocks.of(meta.shape, meta.dtype, take, mine)


class _Taken:
    """An argument of which the rows of a block are given."""

    def __init__(self, take: Take):
        self.take = take


def _joined(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArcBlocks | None:
    """Side by side; or rows of further arcs behind these."""
    tensors = kwargs.get("tensors", args[0] if args else ())
    dim = kwargs.get("dim", args[1] if len(args) > 1 else 0)
    meta = _on_meta(func, args, kwargs)
    if meta is None:
        return None
    if dim % meta.dim():
        count = len(tensors[0])
        takes = [one.take if isinstance(one, ArcBlocks) else _checked(one) for one in tensors]
        if any(len(one) != count for one in tensors):
            return None
        return ArcBlocks.of(meta.shape, meta.dtype, lambda places: func([take(places) for take in takes], dim), tensors)
    if name == "stack":
        return None
    takes = [one.take if isinstance(one, ArcBlocks) else _checked(one) for one in tensors]
    starts = np.cumsum([0, *(len(one) for one in tensors)])

    def take(places: torch.Tensor) -> torch.Tensor:
        out = torch.empty((len(places), *meta.shape[1:]), dtype=meta.dtype)
        for one, (start, end) in zip(takes, pairwise(starts), strict=True):
            here = (places >= start) & (places < end)
            if here.any():
                out[here] = one(places[here] - start).to(meta.dtype)
        return out

    return ArcBlocks.of(meta.shape, meta.dtype, take, tensors)


def _indexed(rows: ArcBlocks, index: Any) -> ArcBlocks | None:
    """Some arcs, or what lies within each row."""
    take = rows.take
    if isinstance(index, torch.Tensor) and index.dim() == 1 and index.dtype in (torch.bool, torch.int64):
        index = index.nonzero().view(-1) if index.dtype == torch.bool else index
        return ArcBlocks.of((len(index), *rows.shape[1:]), rows.dtype, lambda places: take(index[places]), (rows,))
    index = index if isinstance(index, tuple) else (index,)
    used = sum(one is not None and one is not Ellipsis for one in index)
    every = index[0] == slice(None) if isinstance(index[0], slice) else index[0] is Ellipsis and used < rows.dim()
    if not every or any(isinstance(one, torch.Tensor | np.ndarray | list) for one in index):
        return None
    meta = torch.empty(rows.shape, device="meta", dtype=rows.dtype)[index]
    return _of_one(rows, meta, lambda one: one[index], view=True)


def _in_place(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Written into: from now on these rows are made with what the function does to them."""
    rows = args[0]
    if sum(one() is not None for one in rows.views) > 1:
        raise on_all_ranks(InputError(WRITTEN))
    before = ArcBlocks.of(rows.shape, rows.dtype, rows.take, (rows,))
    name = func.__name__
    plain = getattr(torch.Tensor, f"__{name[3:-2]}__" if name.startswith("__i") else name[:-1], None)
    found = None if plain is None else _recorded(plain, plain.__name__, (before, *args[1:]), kwargs)
    if found is None or found.shape != rows.shape:
        every = whole_rows(before)
        func(every, *tree_map_only(ArcBlocks, whole_rows, args[1:]), **kwargs)
        found = leaf(every)
    take = found.take
    rows.widest, rows.take = found.widest, lambda places: take(places).to(rows.dtype)
    return None if name == "__setitem__" else rows


# --- reductions ----------------------------------------------------------------------------------------------------


def partial_rows(group: Any, rows: ArcBlocks, reduce: str) -> tuple[np.ndarray, bool]:
    """(sum, max or min of rows [M, …] at each copy of this rank, [copies, D]; are all rows finite, of max and min).

    Args: group: the arcs of `rows` by the copy at one end.
    """
    width, indptr = rows.shape[1:].numel(), np.asarray(group.indptr)
    empty = {"sum": 0, "max": -np.inf, "min": np.inf}[reduce]
    out = np.full((len(indptr) - 1, width), empty, torch.empty(0, dtype=rows.dtype).numpy().dtype)
    step = rows_of_block(rows)
    in_order, finite = np.arange(min(step, len(group.arcs)), dtype=np.int32), True
    for first, last, start, end in _blocks(indptr, step):
        made = rows.take(torch.from_numpy(group.arcs[start:end].astype(np.int64)))
        block = np.ascontiguousarray(made.reshape(end - start, width).numpy())
        ends = np.clip(indptr[first : last + 1], start, end) - start
        if reduce == "sum":
            kernels.spmm(ends, in_order[: end - start], block, "sum", None, out[first:last], accumulate=True)
            continue
        finite = finite and bool(np.isfinite(block).all())
        found, _ = kernels.spmm(ends, in_order[: end - start], block, reduce, keep_inf=True, winners=False)
        (np.maximum if reduce == "max" else np.minimum)(out[first:last], found, out=out[first:last])
    return out, finite


def _blocks(indptr: np.ndarray, step: int) -> Iterator[tuple[int, int, int, int]]:
    """(first copy, last, first arc, last): whole copies, or a piece of one that has more arcs than a block."""
    first, copies = 0, len(indptr) - 1
    while first < copies:
        last = max(int(np.searchsorted(indptr, indptr[first] + step, "right")) - 1, first + 1)
        start, end = int(indptr[first]), int(indptr[last])
        for piece in range(start, end, step):  # several pieces of a hub only
            yield first, last, piece, min(piece + step, end)
        first = last
