"""What PyG's layers get for `edge_index`: tensors without data that stand for the arcs of all ranks.

    ArcIndex  [2, M]    edge_index                              edge_index[0], row, col = edge_index
    ArcEnds   [M]       one end of every arc                    x[row], x.index_select(0, row), scatter_add_(0, col, m)
    ArcRows   [M, …]    rows at one end, not yet written        edge_weight.view(-1, 1) * x_j
    ArcNorm   [M]       GCN's normalisation, not yet written    edge_weight

Torch asks such a tensor before it runs any function on it (`__torch_function__`). A function in the table
(`functions.py`) is answered over all ranks. Every other function gets real rows in place of ArcRows and ArcNorm, and
is an error on ends, whose numbers mean nothing on one rank. So a layer that was not foreseen is right or refused.

ArcRows that are multiplied by a weight per arc stay unwritten: their sum is then one pass of a kernel, whatever class
the layer is of. They are the result of an autograd function, so that code below torch (a custom function of the user)
sends its gradients the right way too.
"""

import inspect
import traceback
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from distgnn.errors import InputError, on_all_ranks
from distgnn.interop.pyg.arc_set import ArcSet
from distgnn.interop.pyg.norm import GcnNorm
from distgnn.ops.function import Function, is_same, version_of
from distgnn.rows.align import in_space
from distgnn.rows.row_by_row import again
from distgnn.rows.row_tensor import FROM_ROWS, RowTensor, gathered, local_of, name_of, rows_of, takes, writes
from distgnn.rows.row_tensor import METADATA as METADATA_OF_ROWS
from distgnn.rows.space import Space

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}  # name of torch's function -> ours; filled by functions.py
METADATA = METADATA_OF_ROWS | frozenset(
    ("requires_grad", "is_leaf", "grad_fn", "_is_view", "retains_grad", "output_nr", "_version")
)
BOTH = ("source", "target")
ADDS = ("add", "add_", "__add__", "__iadd__", "__radd__")
JOINS = ("cat", "concat", "concatenate")
PRODUCTS = ("mul", "multiply", "__mul__", "__rmul__")
TAKE_SHIFTS = (*ADDS, *JOINS, "__getitem__", "__setitem__", "clone", "to", "unbind", "__iter__")
SHIFTED = (
    "torch's {name} of an edge_index to which an offset was added cannot run distributed: relations of a graph with "
    "types are joined so, torch.cat([edge_index + offsets, …], dim=1), and nothing else"
)
INSTEAD = (
    "the arcs of a vertex lie on several ranks: aggregate with sum, mean, max, min, softmax, std or var over "
    "edge_index, or use the layers of distgnn.nn"
)
WRITTEN = (
    "rows of vertices were written to in place after they were taken to the arcs, x[row], and before they were used "
    "there: write out of place, or take x.clone()[row]"
)
ArcTensorType = TypeVar("ArcTensorType", bound="ArcTensor")


class ArcTensor(torch.Tensor):
    """Base: a tensor without data whose functions are looked up in `HANDLERS`."""

    arcs: ArcSet
    arc_dim: int
    origin: int = 0  # as that of rows
    is_shifted = False  # was an offset added to ends?
    stands_for_arcs = True

    @classmethod
    def wrap(cls: type[ArcTensorType], size: Any, dtype: torch.dtype, **attributes: Any) -> ArcTensorType:
        """A tensor of this class."""
        made: Any = torch.Tensor._make_wrapper_subclass(cls, size, dtype=dtype)
        vars(made).update(attributes)
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        if name in METADATA:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        index: Any = next((one for one in tree_leaves((args, kwargs)) if isinstance(one, ArcTensor)), None)
        trail = None if index is None else index.arcs.trail
        if trail is None:
            return cls._run(name, func, args, kwargs)
        return trail.run(name, lambda *given, **named: cls._run(name, func, given, named), args, kwargs)

    @classmethod
    def _run(cls, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(isinstance(one, ArcNorm) and one.written is not None for one in tree_leaves((args, kwargs))):
            args, kwargs = tree_map_only(ArcNorm, lambda one: one.as_rows(name), (args, kwargs))
            return func(*args, **kwargs)
        if name in HANDLERS:
            found = [one for one in tree_leaves((args, kwargs)) if isinstance(one, ArcTensor)]
            takes_shifts = name in TAKE_SHIFTS and isinstance(args[0], ArcTensor | list | tuple)
            if not takes_shifts and any(one.is_shifted for one in found):
                raise InputError(SHIFTED.format(name=name))
            arcs, role = found[0].arcs, next((one.role for one in found if isinstance(one, ArcEnds)), "source")
            if writes(name) and not isinstance(args[0], RowTensor | ArcTensor):
                return _into_ordinary(func, arcs.graph.space_at(role), *args, **kwargs)
            given = _of_this_rank(name, found[0], role, args, kwargs)
            if takes(HANDLERS[name], func, *given):
                result = HANDLERS[name](func, *given[0], **given[1])
                if result is not NotImplemented:
                    return _as_rows(result, name, arcs, args, role)
        if args and isinstance(args[0], ArcNorm) and writes(name):
            args[0].written = args[0].plain(name)
        args, kwargs = tree_map_only(ArcTensor, lambda tensor: tensor.as_rows(name), (args, kwargs))
        return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # Below autograd: only a custom autograd function comes here, which gets values.
        name = str(func.overloadpacket.__name__)
        args, kwargs = tree_map_only(ArcTensor, lambda one: one.plain(name).detach(), (args, kwargs or {}))
        return func(*args, **kwargs)

    def plain(self, name: str) -> torch.Tensor:
        """The same as a real tensor, for torch's function `name`. Collective: yes."""
        refuse(name)

    def as_rows(self, name: str) -> torch.Tensor:
        """The same as rows of all ranks. Collective: yes."""
        return rows_of(self.plain(name), self.arcs.space, self.arc_dim)

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"{type(self).__name__}({list(self.size())}, {self.arcs.graph.num_ranks} ranks)"

    def __deepcopy__(self, memo: dict[str, Any]) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InputError("the edge_index of a DistGraph cannot be saved: load the graph again and give it to the model")


class ArcIndex(ArcTensor):
    """`edge_index` [2, M] of a DistGraph: `roles` are the ends that its two rows have."""

    roles: tuple[str, str]
    shifts: tuple[int, int] = (0, 0)  # what was added to its two rows, before relations are joined

    @classmethod
    def of(
        cls, arcs: ArcSet, roles: tuple[str, str] = ("source", "target"), shifts: tuple[int, int] = (0, 0)
    ) -> "ArcIndex":
        return cls.wrap((2, arcs.num_all), torch.int64, arcs=arcs, roles=roles, shifts=shifts)

    is_shifted: Any = property(lambda index: any(index.shifts))

    @property
    def is_whole(self) -> bool:
        """All arcs, from their sources to their targets?"""
        return self.arcs.is_whole and self.roles == BOTH

    def row(self, number: int) -> "ArcEnds":
        """One end of every arc."""
        found = ArcEnds.of(self.arcs, self.roles[number])
        found.shift = self.shifts[number]
        return found


class ArcEnds(ArcTensor):
    """One end of every arc, [M], or that as an index of more dimensions, of which `dim` counts the arcs."""

    role: str
    arc_dim: int
    shift: int = 0
    is_shifted: Any = property(lambda ends: ends.shift != 0)

    @classmethod
    def of(cls, arcs: ArcSet, role: str, size: tuple[Any, ...] | None = None, arc_dim: int = 0) -> "ArcEnds":
        size = (arcs.num_all,) if size is None else size
        return cls.wrap(size, torch.int64, arcs=arcs, role=role, arc_dim=arc_dim)


class ArcRows(ArcTensor):
    """Rows at one end of every arc, not yet written: `x.index_select(dim, ends)`, times `weight`.

    Attributes:
        rows: the rows of vertices; arc_dim: their dimension that counts vertices.
        weight: [M] or [M, H] (then the next dimension of rows counts H heads), or a GcnNorm, or None.
    """

    role: str
    arc_dim: int
    weight: Any
    written: torch.Tensor | None
    _rows: torch.Tensor
    _made_at: int | None  # the version of rows

    @property
    def rows(self) -> torch.Tensor:
        if not is_same(self._rows, self._made_at):
            raise on_all_ranks(InputError(WRITTEN))
        return self._rows

    @classmethod
    def of(cls, rows: torch.Tensor, arc_dim: int, ends: ArcEnds, weight: Any = None) -> "ArcRows":
        return _Unwritten.apply(rows, weight if isinstance(weight, torch.Tensor) else None, arc_dim, ends, weight)

    def plain(self, name: str) -> torch.Tensor:
        if self.written is None:
            at_arcs = self.arcs.spread(self.rows.movedim(self.arc_dim, 0), self.role)
            weight = self.weight.weights() if isinstance(self.weight, GcnNorm) else self.weight
            if weight is not None:
                at_arcs = at_arcs * weight.reshape(*weight.shape, *[1] * (at_arcs.dim() - weight.dim()))
            self.written = at_arcs.movedim(0, self.arc_dim)
        return self.written

    def times(self, weight: Any) -> "ArcRows":
        return ArcRows.of(self.rows, self.arc_dim, ArcEnds.of(self.arcs, self.role), weight)


class ArcNorm(ArcTensor):
    """The weights of GCN's normalisation, [M] or [M, 1], not written until somebody writes into them."""

    factors: GcnNorm
    written: torch.Tensor | None = None

    @classmethod
    def of(cls, norm: GcnNorm, dims: int = 1) -> "ArcNorm":
        size = (norm.arcs.num_all, *[1] * (dims - 1))
        return cls.wrap(size, norm.factors.dtype, arcs=norm.arcs, factors=norm, arc_dim=0)

    def plain(self, name: str) -> torch.Tensor:
        return self.factors.weights().view(-1, *[1] * (self.dim() - 1)) if self.written is None else self.written


class _Unwritten(Function):
    """Makes ArcRows; backward, for code that takes them as a tensor, is the written rows' backward."""

    is_twice = True

    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, weight: torch.Tensor | None, arc_dim: int, ends: ArcEnds, given: Any
    ) -> ArcRows:
        ctx.inputs, ctx.versions = (rows, weight, given), (version_of(rows), version_of(weight))
        size = list(rows.shape)
        size[arc_dim] = ends.arcs.num_all
        ctx.made = ends.arcs, ends.role, arc_dim
        where: dict[str, Any] = {"arcs": ends.arcs, "role": ends.role, "arc_dim": arc_dim}
        made = {"_rows": rows, "_made_at": version_of(rows), "weight": given, "written": None}
        return ArcRows.wrap(tuple(size), rows.dtype, **where, **made)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        (rows, weight, given), (arcs, role, arc_dim) = ctx.inputs, ctx.made
        if not all(map(is_same, (rows, weight), ctx.versions)):
            raise on_all_ranks(InputError(WRITTEN))
        with torch.enable_grad():
            leaves: list[Any] = [None if one is None else one.detach().requires_grad_() for one in (rows, weight)]
            ends = ArcEnds.of(arcs, role)
            made = ArcRows.of(leaves[0], arc_dim, ends, given if weight is None else leaves[1])
            wanted = [one for one in leaves if one is not None]
            found = list(torch.autograd.grad(made.plain("backward"), wanted, grad))
        return found.pop(0), found.pop(0) if weight is not None else None, None, None, None


VERTICES = frozenset(
    ("scatter_add", "scatter_add_", "index_add", "index_add_", "scatter_reduce", "scatter_reduce_", "bincount")
)  # functions that give a row of each vertex
OF_VERTICES = VERTICES | {"__getitem__", "__setitem__", "index_select", "gather"}  # whose first argument counts them


def local_in(one: Any, arcs: ArcSet, role: str | None = None, dim: int = 0) -> Any:
    """This rank's part of an argument whose dimension `dim` counts vertices at one end of arcs, or arcs (role None).

    An ordinary tensor of another size there is taken as it is.
    """
    if isinstance(one, ArcTensor):
        return one
    space = arcs.space if role is None else arcs.graph.space_at(role)
    if isinstance(one, RowTensor):
        return in_space(one, space).inner
    one = local_of(one)
    return space.local_part(one, dim) if 0 <= dim < one.dim() and one.shape[dim] == space.num_global else one


def _of_this_rank(name: str, known: Any, role: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """(args, kwargs) with this rank's part of each tensor; ids that choose arcs stay whole. known: it stands for arcs.

    The first argument of `OF_VERTICES` counts vertices, unless it stands for arcs; all others count arcs.
    """
    arcs, back = known.arcs, known.dim() - getattr(known, "arc_dim", 0)
    if name in PRODUCTS:  # aligned from the right
        return tree_map_only(torch.Tensor, lambda one: local_in(one, arcs, None, one.dim() - back), (args, kwargs))
    if name in JOINS:  # what is joined to an `edge_index` is [2, O]
        args, kwargs = tree_map_only(RowTensor, local_of, (args, kwargs))
        return tree_map_only(torch.Tensor, lambda one: local_in(one, arcs, role, 1), (args, kwargs))
    chooses = name in ("__getitem__", "index_select") and isinstance(args[0], ArcTensor)
    dim = _dim_of(args[1:], kwargs)

    def part(one: torch.Tensor) -> Any:
        if chooses and one.dtype == torch.int64:
            return gathered(one) if isinstance(one, RowTensor) else local_of(one)
        of_vertices = one is args[0] and name in OF_VERTICES
        return local_in(one, arcs, role if of_vertices else None, dim % max(one.dim(), 1))

    return tree_map_only(torch.Tensor, part, (args, kwargs))


def _dim_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """The dimension that is given first, or by name; else 0."""
    return next((one for one in (*args[:1], kwargs.get("dim")) if isinstance(one, int)), 0)


def _into_ordinary(func: Any, space: Space, out: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """Into a tensor of all vertices that every rank has as a whole: of its rows, and of all again. Collective."""
    plain = local_of(out)
    dim = _dim_of(args, kwargs) % max(plain.dim(), 1)
    given = (one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor))
    counts_vertices = plain.dim() and plain.shape[dim] == space.num_global
    if not counts_vertices or (torch.is_grad_enabled() and any(one.requires_grad for one in given)):
        raise InputError(f"torch's {name_of(func)} along arcs: {FROM_ROWS}")
    rows = rows_of(space.local_part(plain, dim).clone(), space, dim)
    found = func(rows, *args, **kwargs)
    plain.copy_(gathered(rows))
    return found if found is None else out


def _as_rows(result: Any, name: str, arcs: ArcSet, args: tuple[Any, ...], role: str) -> Any:
    """What a handler gave as rows of all ranks."""
    ordinary = not isinstance(result, torch.Tensor) or isinstance(result, ArcTensor) or result.dim() == 0
    if ordinary or name.startswith("new_"):
        return result
    out = args[0]
    if isinstance(out, RowTensor) and out.inner is result:
        return again(out)
    space = arcs.graph.space_at(role) if name in VERTICES else arcs.space
    dim = next((dim for dim in range(result.dim()) if result.shape[dim] == space.num_local), 0)
    if name in ("index_select", "gather", "scatter_add", "index_add", "scatter_reduce") and isinstance(args[1], int):
        dim = args[1] % result.dim()
    return rows_of(result, space, dim)


def refuse(name: str) -> NoReturn:
    """Raise InputError for torch's function `name`, naming the aggregator or layer that asked for it."""
    who = f"torch's {name} on edge_index"
    for frame, _ in traceback.walk_stack(inspect.currentframe()):
        caller = frame.f_locals.get("self")
        if isinstance(caller, torch.nn.Module):
            who = f"{type(caller).__name__} ({who})"
            break
    raise InputError(f"{who} cannot run distributed: {INSTEAD}")
