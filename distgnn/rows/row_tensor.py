"""RowTensor: rows of all ranks, of which this rank holds some. WholeTensor: what was made of all rows, alike on all.

    x = graph.x            RowTensor [N, D]: shape and results are one process's, the numbers here are [n, D]
    x - x.mean(0)          the mean is over all rows
    x[train_ids]           ids are global ones
    loss.backward()        of a WholeTensor: every rank's share of the gradient, then their sum

Torch asks a RowTensor before it runs a function on it. The function is then one of three, and nothing else:

    local     row by row: elementwise functions, products with weights, what stays within a row
    global    over all rows: sums, means, extremes, losses, batch norms, rows by id; one exchange, with its gradient
    refused   in one line that says what to write; on one rank it runs on an ordinary tensor of all rows

What this rank holds is an ordinary tensor, `x.to_local()`; autograd sees that tensor only. `HANDLERS` has a function
for each name: the other files of this folder fill it.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch

from distgnn.errors import InputError
from distgnn.ops.edges import arc_blocks
from distgnn.rows.space import Space

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}  # name of torch's function -> ours: `func`, then its arguments under torch's names
INSTEAD: dict[str, str] = {}  # name of a refused function -> what to write
_FOUND: dict[Any, tuple[str, Handler]] = {}  # names and handlers of functions that were met
METADATA = frozenset(
    (
        *("size", "shape", "dim", "ndim", "ndimension", "dtype", "device", "layout", "numel", "nelement", "is_cuda"),
        *("is_sparse", "is_floating_point", "is_complex", "is_quantized", "is_meta", "is_nested", "is_sparse_csr"),
        *("is_mkldnn", "is_xpu", "is_mps", "is_mtia", "is_ipu", "is_vulkan", "is_maia", "itemsize", "element_size"),
        *("get_device", "names", "nbytes", "is_signed", "is_inference", "is_conj", "is_neg", "is_same_size"),
        *("__hash__", "is_tensor", "broadcast_tensors_shape", "result_type", "can_cast", "__dir__", "is_storage"),
        *("is_contiguous", "is_shared", "is_pinned", "has_names", "stride", "storage_offset", "dim_order"),
    )
)
arc_blocks.METADATA.update(METADATA)
OWN_FUNCTION = (
    "a torch.autograd.Function of one's own, checkpoint(use_reentrant=True) or a backward hook of a module has made "
    "these rows, and their gradient would be lost: give the function x.to_local() and take graph.rows_of(result), or "
    "write use_reentrant=False"
)
COMPILED = (
    "rows of all ranks are not compiled: load the graph with plain_tensors=True, or compile functions of x.to_local()"
)
FROM_ROWS = "an ordinary tensor keeps no gradient of rows: make it from rows, x.new_zeros(N, C) or torch.zeros_like(x)"
ANYWHERE = "use x.to_local() for this rank's rows, or graph.gather_rows(x) for all of them"


class RowTensor(torch.Tensor):
    """Rows of all ranks. Its shape is as in one process; `rows_of` makes it.

    Attributes:
        inner: this rank's rows, an ordinary tensor; row_space: which they are; row_dim: the dimension that counts them.
    """

    inner: torch.Tensor  # type: ignore[assignment]  # in place of the product of that name
    row_space: Space
    row_dim: int
    written_back: Any = None  # of a range of rows: (the rows, the index) that writing into it changes
    origin: int = 0  # how they were made, as a number that ranks share (origin.py)
    knows_rows = True

    @property
    def face(self) -> Any:
        """The graph that these are rows of, as scripts see it."""
        return self.row_space.graph.face

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if len(types) > 1:
            for kind in types:
                if getattr(kind, "stands_for_arcs", False):
                    return kind.__torch_function__(func, types, args, kwargs)
        if torch.compiler.is_compiling() and not _opaque:
            raise InputError(COMPILED)  # while torch.compile looks: it then runs this as it is
        if torch.is_grad_enabled():
            for one in args:
                if type(one) is RowTensor and not one.inner.requires_grad and outer_requires_grad(one):
                    raise InputError(OWN_FUNCTION)
        known = _FOUND.get(func)
        if known is None:
            name = f"set {name_of(func)}" if getattr(func, "__name__", "") == "__set__" else name_of(func)
            known = _FOUND[func] = name, _metadata if name in METADATA else HANDLERS.get(name, _refused)
        name, handler = known
        kwargs = kwargs or {}
        for place, one in enumerate(args):  # as torch itself takes them beside tensors
            if isinstance(one, np.ndarray) and one.dtype.kind in "biuf" and one.ndim > 0:
                args = (*args[:place], torch.from_numpy(one), *args[place + 1 :])
        among = [] if handler is _metadata else _rows_in(args) or _rows_in(kwargs)
        trail = among[0].row_space.trail if among else None
        try:
            if trail is None:
                return handler(func, *args, **kwargs)
            return trail.run(name, handler, (func, *args), kwargs)
        except (InputError, TypeError) as error:
            if _runs_alone(func, handler, args, kwargs):
                with contextlib.suppress(Exception):  # torch has no answer either, and the line says more
                    return func(*_alone(args), **_alone(kwargs))
            if isinstance(error, TypeError) and not takes(handler, func, args, kwargs):
                refuse(name_of(func), f"{str(error).partition('() ')[2]}; {ANYWHERE}")
            raise

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        refuse(str(func.overloadpacket.__name__))

    def to_local(self) -> torch.Tensor:
        """This rank's rows as an ordinary tensor; what is computed from it is this rank's."""
        return self.inner

    def like(self, inner: torch.Tensor) -> "RowTensor":
        """Other numbers of the same rows, in the same dimension."""
        return rows_of(inner, self.row_space, self.row_dim)

    def whole(self) -> torch.Tensor:
        """All rows in the order of a single process, on every rank, without gradient. Collective: yes."""
        return gathered(self)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Any:
        if self.row_dim == 0 and _has_all(self.row_space):
            return iter(_in_order(self))
        return iter(self.unbind(0))

    def __bool__(self) -> bool:
        raise InputError("the truth value of rows of all ranks is ambiguous: use .any() or .all()")

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        space = self.row_space
        held = f"{space.num_local} of {space.num_global} {space.kind}"
        return f"RowTensor({list(self.shape)}, {self.dtype}, {held} here, dimension {self.row_dim})"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __deepcopy__(self, memo: dict[str, Any]) -> "RowTensor":
        made: Any = self.like(self.inner.clone().detach())
        if self.inner.requires_grad:
            made.requires_grad_()
        if isinstance(self, torch.nn.Parameter):
            made._is_param = True
        return made

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        found = gathered(self).numpy()
        return found if dtype is None else found.astype(dtype)


def keep_from_compiler() -> None:
    """Let `torch.compile` call functions on rows without looking into them, from now on."""
    if not _opaque:
        _opaque.append(True)
        for kind in (RowTensor, WholeTensor):
            plain: Any = kind.__torch_function__
            setattr(kind, "__torch_function__", classmethod(torch.compiler.disable(plain.__func__)))  # noqa: B010


_opaque: list[bool] = []


class WholeTensor(torch.Tensor):
    """An ordinary tensor that was made of all ranks' rows: the same numbers on every rank."""

    written_back: Any = None  # as RowTensor's, of one row

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if RowTensor in types:
            return RowTensor.__torch_function__(func, types, args, kwargs)
        if getattr(func, "__name__", "") in WHOLE:
            return WHOLE[func.__name__](*args, **(kwargs or {}))
        found = super().__torch_function__(func, types, args, kwargs)
        if found is (args[0] if args else None) and isinstance(found, WholeTensor) and found.written_back is not None:
            base, index = found.written_back  # one row, written into
            base[index] = found
        return found


def _number(name: str) -> Handler:
    """A conversion to a number of Python, without a word on gradients."""
    return lambda value, *args: getattr(value.detach().as_subclass(torch.Tensor), name)(*args)


WHOLE: dict[str, Handler] = {}  # functions of a WholeTensor that ranks do together: `backward`, `grad`; and conversions
WHOLE.update({name: _number(name) for name in ("item", "__float__", "__int__", "__bool__", "__index__", "__format__")})


def rows_of(inner: torch.Tensor, space: Space, dim: int = 0) -> RowTensor:
    """The rows of all ranks of which this rank has `inner`, whose dimension `dim` counts them."""
    size = list(inner.shape)
    dim = dim % len(size)
    if size[dim] != space.num_local:
        raise InputError(f"{size[dim]} rows where this rank has {space.num_local} {space.kind}")
    size[dim] = space.num_global
    made: Any = torch.Tensor._make_wrapper_subclass(
        RowTensor, size, dtype=inner.dtype, requires_grad=inner.requires_grad
    )
    made.inner, made.row_space, made.row_dim = inner, space, dim
    return made


def local_of(value: Any) -> Any:
    """This rank's rows of a RowTensor; the ordinary tensor of a WholeTensor; anything else is itself."""
    if isinstance(value, RowTensor):
        return value.inner
    return value.as_subclass(torch.Tensor) if isinstance(value, WholeTensor) else value


def whole_of(value: torch.Tensor) -> torch.Tensor:
    """Mark what was made of the rows of all ranks and is the same on each."""
    return value.as_subclass(WholeTensor)


def gathered(rows: RowTensor) -> torch.Tensor:
    """All rows in the order of a single process, on every rank. Collective: yes."""
    space, dim = rows.row_space, rows.row_dim
    mine = rows.inner.detach().movedim(dim, 0)[: space.num_counted].contiguous()
    if space.comm.size == 1 and space.is_whole:
        return mine.movedim(0, dim).clone()
    as_bytes = mine.view(torch.int16) if mine.dtype == torch.bfloat16 else mine
    out = as_bytes.new_empty((space.num_global, *mine.shape[1:]))
    sizes = space.comm.allgather(len(mine))
    places = space.places[: space.num_counted]
    for rank, size in enumerate(sizes):  # one rank's rows at a time: nobody holds all of them twice
        theirs, where = (
            (as_bytes, places) if rank == space.comm.rank else (as_bytes.new_empty((size, *mine.shape[1:])), None)
        )
        where = space.comm.bcast(where, root=rank)
        flat = theirs.reshape(-1).numpy().view("u1")
        for start in range(0, len(flat), 1 << 30):  # bytes of a piece that any MPI library can count
            space.comm.Bcast(flat[start : start + (1 << 30)], root=rank)
        out[torch.from_numpy(where)] = theirs
    return (out.view(torch.bfloat16) if mine.dtype == torch.bfloat16 else out).movedim(0, dim)


def handles(*names: str, table: dict[str, Handler] = HANDLERS) -> Callable[[Handler], Handler]:
    """Put a handler into a table under some names."""

    def register(handler: Handler) -> Handler:
        table.update(dict.fromkeys(names, handler))
        return handler

    return register


def name_of(func: Any) -> str:
    """The name of a function of torch, of a property for its getter."""
    name = getattr(func, "__name__", str(func))
    return str(func.__self__.__name__) if name in ("__get__", "__set__", "__delete__") else name


def writes(name: str) -> bool:
    """Does a function of torch write into its first argument?"""
    in_place = name.endswith("_") and not name.endswith("__")
    operator = name.startswith("__i") and name not in ("__iter__", "__index__", "__invert__")
    return in_place or operator or name == "__setitem__"


def named(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a function of `torch.nn.functional` by name."""
    theirs = getattr(torch.nn.functional, func.__name__)
    return dict(inspect.signature(theirs).bind(*args, **kwargs).arguments)


def outer_requires_grad(rows: RowTensor) -> bool:
    """Does torch say so of the tensor without data? Then a function of the user's own has made it."""
    with torch._C.DisableTorchFunctionSubclass():
        return bool(rows.requires_grad)


def _metadata(func: Any, *args: Any, **kwargs: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def _refused(func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    refuse(name_of(func))


signature_of = functools.cache(inspect.signature)


def takes(handler: Handler, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Has the handler a place for each argument?"""
    try:
        signature_of(handler).bind(func, *args, **kwargs)
    except TypeError:
        return False
    return True


def refuse(name: str, instead: str | None = None) -> NoReturn:
    """Raise InputError for torch's function `name`."""
    advice = instead or INSTEAD.get(name.rstrip("_"), ANYWHERE)
    raise InputError(f"torch's {name} over the rows of all ranks cannot run distributed: {advice}")


# --- one rank: what is refused on several is what one process does ---------------------------------------------------

BOUND_TO_ROWS = frozenset(
    ("grad", "backward", "requires_grad_", "retain_grad", "register_hook", "grad_fn", "is_leaf", "data", "view_as")
)


def _runs_alone(func: Any, handler: Handler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Are all rows here, and does the function make something new of them? One that changes rows is refused."""
    name = name_of(func)
    changes = name.endswith("_") or name in ("__setitem__", "__delitem__") or getattr(func, "__name__", "") == "__set__"
    into = (args[0] if changes and args else None, kwargs.get("out"))
    if handler is refused or name in BOUND_TO_ROWS or any(isinstance(one, RowTensor) for one in into):
        return False
    found = [*_rows_in(args), *_rows_in(kwargs)]
    return bool(found) and all(_has_all(one.row_space) for one in found)


def _has_all(space: Space) -> bool:
    return space.comm.size == 1 and space.num_local == space.num_counted == space.num_global


def _rows_in(values: Any) -> list[RowTensor]:
    if isinstance(values, RowTensor):
        return [values]
    inside = values.values() if isinstance(values, dict) else values if isinstance(values, (list, tuple)) else ()
    return [rows for one in inside for rows in _rows_in(one)]


def _alone(values: Any, whole: Callable[[RowTensor], torch.Tensor] | None = None) -> Any:
    """With ordinary tensors of all rows in place of rows."""
    if isinstance(values, dict):
        return {name: _alone(one, whole) for name, one in values.items()}
    if isinstance(values, (list, tuple)) and not isinstance(values, torch.Size):
        return type(values)(_alone(one, whole) for one in values)
    return (whole or _in_order)(values) if isinstance(values, RowTensor) else local_of(values)


def into_ordinary(func: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that writes rows into an ordinary tensor: every rank has all of it, and writes all rows. Collective.

    Raises: InputError where the gradient of rows would be lost.
    """
    if torch.is_grad_enabled() and any(one.inner.requires_grad for one in (*_rows_in(args), *_rows_in(kwargs))):
        refuse(name_of(func), FROM_ROWS)
    func(*_alone(args, gathered), **_alone(kwargs, gathered))
    return None if func.__name__ == "__setitem__" else args[0]


def _in_order(rows: RowTensor) -> torch.Tensor:
    """All rows, in the order of the source, with their gradient."""
    if rows.row_space.is_whole:
        return rows.inner
    return rows.inner.index_select(rows.row_dim, torch.argsort(rows.row_space.index))


@handles("data_ptr", "untyped_storage", "storage", "__cuda_array_interface__", "share_memory_", "pin_memory", "set_")
def refused(func: Any, *args: Any, **kwargs: Any) -> Any:
    name = getattr(func, "__name__", "storage")
    if name in ("untyped_storage", "storage") and args[0].row_space.graph.buffers.lean:
        return torch.empty(0).untyped_storage()  # reversible layers free it, and never make it again without gradients
    refuse(name)
