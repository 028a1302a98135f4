"""Torch's functions on the tensors of `tensors.py`: a handler has `func`, then the arguments of its namesake.

A handler returns NotImplemented for what it does not know: then real rows take the place of unwritten ones, and ends
are refused.
"""

import functools
from typing import Any

import torch

from distgnn.errors import InputError
from distgnn.interop.pyg.arc_set import ArcSet
from distgnn.interop.pyg.norm import GcnNorm
from distgnn.interop.pyg.tensors import ADDS, HANDLERS, JOINS, PRODUCTS, ArcEnds, ArcIndex, ArcNorm, ArcRows, ArcTensor
from distgnn.ops.sums import min_over_ranks
from distgnn.rows.row_tensor import handles as of_table

FLOATS = (torch.float32, torch.float64)
SAME = ("to", "long", "cpu", "contiguous", "clone", "detach", "requires_grad_", "type_as", "int64")
REDUCES = {"sum": "sum", "add": "sum", "mean": "mean", "amax": "max", "amin": "min", "max": "max", "min": "min"}
MADE_LIKE = ("ones_like", "zeros_like", "empty_like", "full_like", "rand_like", "randn_like")


handles = functools.partial(of_table, table=HANDLERS)


# --- the same arcs, or some of them ------------------------------------------------------------------------------


@handles(*SAME)
def same(func: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """Ends have no other dtype and live on the CPU."""
    if func.__name__ == "clone" and isinstance(tensor, ArcIndex):  # an offset may be added to it
        return ArcIndex.of(tensor.arcs, tensor.roles, tensor.shifts)
    return tensor if isinstance(tensor, ArcIndex | ArcEnds) else NotImplemented


@handles(*ADDS)
def add(func: Any, tensor: Any, offset: Any, *, alpha: int = 1) -> Any:
    """An offset of vertices, before relations are joined."""
    if isinstance(offset, ArcIndex | ArcEnds):
        tensor, offset = offset, tensor
    if isinstance(tensor, ArcEnds) and tensor.dim() == 1 and torch.as_tensor(offset).numel() == 1:
        made = ArcEnds.of(tensor.arcs, tensor.role)
        made.shift = tensor.shift + int(offset)
        return made
    if isinstance(tensor, ArcIndex) and isinstance(offset, torch.Tensor) and tuple(offset.shape) == (2, 1):
        shifts = tensor.shifts[0] + int(offset[0]), tensor.shifts[1] + int(offset[1])
        return ArcIndex.of(tensor.arcs, tensor.roles, shifts)
    return NotImplemented


HANDLERS["__len__"] = lambda func, tensor: tensor.size(0)
for _name in ("new_ones", "new_zeros", "new_full", "new_empty", "new_tensor"):
    HANDLERS[_name] = lambda func, tensor, *args, **kwargs: func(torch.empty(0, dtype=tensor.dtype), *args, **kwargs)


@handles("__getitem__")
def getitem(func: Any, tensor: Any, index: Any) -> Any:
    if isinstance(index, tuple) and len(index) == 1:
        index = index[0]
    if isinstance(index, ArcEnds) and index.dim() == 1:
        return index_select(func, tensor, 0, index)
    if isinstance(tensor, ArcIndex):
        if isinstance(index, int):
            return tensor.row(index)
        if isinstance(index, list | torch.Tensor) and torch.as_tensor(index).tolist() == [1, 0]:
            return ArcIndex.of(tensor.arcs, (tensor.roles[1], tensor.roles[0]))
        if isinstance(index, tuple) and len(index) == 2:
            every, (row, places) = slice(None), index
            if isinstance(row, slice) and row == every and _selects(places):
                return _chosen(tensor, places)
            if isinstance(row, int):
                ends = tensor.row(row)
                return ends if isinstance(places, slice) and places == every else getitem(func, ends, places)
    if isinstance(tensor, ArcEnds) and tensor.dim() == 1 and _selects(index):
        return _chosen(tensor, index)
    return NotImplemented


def _selects(index: Any) -> bool:
    is_plain = isinstance(index, torch.Tensor) and not isinstance(index, ArcTensor) and index.dim() == 1
    return is_plain and index.dtype in (torch.bool, torch.int64)


def _chosen(tensor: Any, index: torch.Tensor) -> Any:
    arcs = tensor.arcs.by_ids(index) if index.dtype == torch.int64 else tensor.arcs.select(index)
    return ArcIndex.of(arcs, tensor.roles) if isinstance(tensor, ArcIndex) else ArcEnds.of(arcs, tensor.role)


@handles("flip")
def flip(func: Any, tensor: Any, *dims: Any) -> Any:
    return getitem(func, tensor, [1, 0]) if dims in ((0,), ([0],), ((0,),)) else NotImplemented


@handles("unbind", "__iter__")
def unbind(func: Any, tensor: Any, dim: int = 0) -> Any:
    if not isinstance(tensor, ArcIndex) or dim not in (0, -2):
        return NotImplemented
    return iter((tensor.row(0), tensor.row(1)))


@handles("stack")
def stack(func: Any, tensors: Any, dim: int = 0) -> Any:
    tensors = list(tensors)
    if dim != 0 or len(tensors) != 2 or not all(isinstance(one, ArcEnds) for one in tensors):
        return NotImplemented
    if not tensors[0].arcs.same(tensors[1].arcs) or tensors[0].role == tensors[1].role:
        return NotImplemented
    return ArcIndex.of(tensors[0].arcs, (tensors[0].role, tensors[1].role))


@handles(*JOINS)
def cat(func: Any, tensors: Any, dim: int = 0) -> Any:
    """Arcs and a loop at every vertex behind them: what PyG's `add_self_loops` does; or several relations' arcs."""
    tensors = list(tensors)
    if dim in (1, -1) and all(isinstance(one, ArcIndex) for one in tensors):
        return _joined(tensors)
    if len(tensors) != 2 or not isinstance(tensors[0], ArcIndex) or dim not in (1, -1):
        return NotImplemented
    index, loops = tensors
    index.arcs.check_square("self-loops are added")
    every = torch.from_numpy(index.arcs.graph.owned_ids).expand(2, -1)
    if isinstance(loops, ArcTensor) or loops.shape != every.shape or not torch.equal(loops, every):
        raise InputError(
            "arcs cannot be added to the edge_index of a DistGraph, but for one self-loop at each of its vertices "
            "(add_self_loops with num_nodes=x.size(0)): add them before the graph is cut"
        )
    return ArcIndex.of(index.arcs.with_loops(), index.roles)


def _joined(tensors: list[ArcIndex]) -> ArcIndex:
    """The arcs of several relations, whose vertices are counted from the offsets that were added."""
    graphs = [one.arcs.graph for one in tensors]
    if not all(one.is_whole and hasattr(one.arcs.graph, "joined") for one in tensors):
        raise InputError("the edge_index of a graph that is cut is joined with other relations', each whole")
    return ArcIndex.of(ArcSet(graphs[0].joined(graphs, [one.shifts for one in tensors])))


@handles("max", "min", "amax", "amin")
def extreme(func: Any, tensor: Any) -> Any:
    """For `int(index.max()) + 1`, PyG's number of vertices."""
    if not isinstance(tensor, ArcIndex | ArcEnds):
        return NotImplemented
    roles = tensor.roles if isinstance(tensor, ArcIndex) else (tensor.role,)
    return tensor.arcs.extreme_id(func.__name__.removeprefix("a"), roles)


# --- comparisons, shapes -----------------------------------------------------------------------------------------


@handles(*(name for one in ("eq", "ne", "lt", "le", "gt", "ge") for name in (one, f"__{one}__")))
def compare(func: Any, left: Any, right: Any) -> Any:
    both = isinstance(left, ArcEnds) and isinstance(right, ArcEnds)
    if not both or left.dim() != 1 or right.dim() != 1 or not left.arcs.same(right.arcs):
        return NotImplemented
    return func(left.arcs.ids(left.role), right.arcs.ids(right.role))


@handles("view", "reshape")
def view(func: Any, tensor: Any, *size: Any) -> Any:
    """Dimensions of 1 around the arcs."""
    shape = size[0] if len(size) == 1 and isinstance(size[0], tuple | list) else size
    if isinstance(tensor, ArcNorm) and tuple(shape) in ((-1,), (-1, 1), (tensor.arcs.num_all, 1)):
        return ArcNorm.of(tensor.factors, len(shape))
    if not isinstance(tensor, ArcEnds) or tensor.dim() != 1 or any(isinstance(one, torch.dtype) for one in shape):
        return NotImplemented
    places = [place for place, number in enumerate(shape) if number != 1]
    arc_dim = shape.index(-1) if -1 in shape else (places or [0])[0]
    if any(place != arc_dim for place in places):
        return NotImplemented
    full = tuple(tensor.arcs.num_all if place == arc_dim else 1 for place in range(len(shape)))
    return ArcEnds.of(tensor.arcs, tensor.role, full, arc_dim)


@handles("unsqueeze")
def unsqueeze(func: Any, tensor: Any, dim: int) -> Any:
    if isinstance(tensor, ArcNorm) and tensor.dim() == 1 and dim in (1, -1):
        return ArcNorm.of(tensor.factors, 2)
    if not isinstance(tensor, ArcEnds):
        return NotImplemented
    dim = dim % (tensor.dim() + 1)
    shape = list(tensor.size())
    shape.insert(dim, 1)
    return ArcEnds.of(tensor.arcs, tensor.role, tuple(shape), tensor.arc_dim + (dim <= tensor.arc_dim))


@handles("expand", "broadcast_to", "expand_as")
def expand(func: Any, tensor: Any, *size: Any) -> Any:
    """To a shape, given number by number or as one, or to another tensor's."""
    shape = size[0] if len(size) == 1 and isinstance(size[0], tuple | list | torch.Size) else size
    shape = tuple(size[0].size()) if len(size) == 1 and isinstance(size[0], torch.Tensor) else tuple(shape)
    if not isinstance(tensor, ArcEnds):
        return NotImplemented
    arc_dim = tensor.arc_dim + len(shape) - tensor.dim()
    own = (1,) * (len(shape) - tensor.dim()) + tuple(tensor.size())
    shape = tuple(own[place] if number == -1 else number for place, number in enumerate(shape))
    if shape[arc_dim] not in (tensor.arcs.num_arcs, tensor.arcs.num_all):
        return NotImplemented
    shape = (*shape[:arc_dim], tensor.arcs.num_all, *shape[arc_dim + 1 :])
    return ArcEnds.of(tensor.arcs, tensor.role, shape, arc_dim)


@handles(*MADE_LIKE)
def made_like(func: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    size = [tensor.arcs.num_arcs if number == tensor.arcs.num_all else number for number in tensor.size()]
    stand_in = torch.empty(1, dtype=tensor.dtype).expand(size)
    return func(stand_in, *args, memory_format=torch.contiguous_format, **kwargs)


# --- rows to arcs ------------------------------------------------------------------------------------------------


@handles("index_select")
def index_select(func: Any, rows: Any, dim: int, index: Any) -> Any:
    if isinstance(rows, ArcIndex | ArcEnds) and dim in (rows.dim() - 1, -1) and _selects(index):
        return _chosen(rows, index)
    if not isinstance(index, ArcEnds) or isinstance(rows, ArcTensor):
        return NotImplemented
    dim = dim % rows.dim()
    check_size(index.arcs, rows.size(dim), index.role)
    if rows.dtype in FLOATS and rows.dim() > 1:
        return ArcRows.of(rows, dim, index)
    return index.arcs.spread(rows.movedim(dim, 0), index.role).movedim(0, dim)


@handles("gather")
def gather(func: Any, rows: Any, dim: int, index: Any) -> Any:
    if isinstance(rows, ArcTensor) or not isinstance(index, ArcEnds):
        return NotImplemented
    if dim % rows.dim() != index.arc_dim or rows.dim() != index.dim():
        return NotImplemented
    return index_select(func, rows, dim, ArcEnds.of(index.arcs, index.role))


def check_size(arcs: ArcSet, size: int | None, role: str = "target") -> None:
    """Raise InputError where rows do not belong to a part's vertices at one end of arcs."""
    if size is not None and size not in (arcs.graph.num_at(role), arcs.num_vertices(role)):
        raise InputError(
            f"{size} rows for {arcs.num_vertices(role)} vertices of all ranks: give one row for each (graph.x has them)"
        )


@handles(*PRODUCTS)
def mul(func: Any, left: Any, right: Any) -> Any:
    """Unwritten rows times one weight per arc, or per arc and head, stay unwritten."""
    rows, weight = (left, right) if isinstance(left, ArcRows) else (right, left)
    if not isinstance(rows, ArcRows) or rows.weight is not None or rows.written is not None:
        return NotImplemented
    if isinstance(weight, ArcNorm):
        fits = rows.arcs is weight.arcs and rows.role == "source" and weight.size(-1) == 1
        return rows.times(weight.factors) if fits and _aligned(rows, weight) is not None else NotImplemented
    if not isinstance(weight, torch.Tensor) or isinstance(weight, ArcTensor) or weight.dtype != rows.dtype:
        return NotImplemented
    found = _aligned(rows, weight)
    return NotImplemented if found is None else rows.times(found)


def _aligned(rows: ArcRows, weight: torch.Tensor) -> torch.Tensor | None:
    """Weight as [M], or [M, H] where rows are [M, H, F], if it broadcasts to rows that way; else None."""
    behind = rows.dim() - rows.arc_dim - 1  # dimensions after the arcs
    num_arcs = rows.arcs.num_arcs
    shape = tuple(weight.size())
    if behind and len(shape) >= behind + 1:
        first = len(shape) - behind - 1
        if shape[first] != num_arcs or any(number != 1 for number in shape[:first]) or len(shape) > rows.dim():
            return None
        after = shape[first + 1 :]
        if all(number == 1 for number in after):
            return weight if isinstance(weight, ArcNorm) else weight.reshape(num_arcs)
        if rows.arc_dim == 0 and behind == 2 and after == (rows.size(1), 1):
            return weight.reshape(num_arcs, rows.size(1))
    return None


# --- reductions of rows of arcs at one end -------------------------------------------------------------------------


def reduce_at(ends: ArcEnds, arc_rows: Any, dim: int, reduce: str) -> torch.Tensor:
    """Reduce arc rows at one end: dimension `dim` becomes the vertices'. Collective: yes, and backward."""
    arcs = ends.arcs
    if isinstance(arc_rows, ArcRows) and arc_rows.written is None:
        if arc_rows.arcs is arcs and arc_rows.arc_dim == dim and (arc_rows.role, ends.role) == ("source", "target"):
            found = _reduce_unwritten(arc_rows, reduce)
            if found is not None:
                return found
    if isinstance(arc_rows, ArcTensor):
        arc_rows = arc_rows.plain(reduce)
    rows = arc_rows.movedim(dim, 0)
    if reduce in ("max", "min"):
        out = arcs.extreme(rows, reduce, ends.role)
    else:
        out = arcs.mean(rows, ends.role) if reduce == "mean" else arcs.sum(rows, ends.role)
    return out.movedim(0, dim)


def _reduce_unwritten(arc_rows: ArcRows, reduce: str) -> torch.Tensor | None:
    arcs, weight = arc_rows.arcs, arc_rows.weight
    rows = arc_rows.rows.movedim(arc_rows.arc_dim, 0)
    columns = rows.reshape(len(rows), rows.shape[1:].numel())
    if reduce in ("max", "min"):
        out = arcs.extreme_sources(columns, reduce) if weight is None else None
    elif isinstance(weight, GcnNorm):
        out = weight.sum_sources(columns)
        out = arcs.divided(out, "target") if reduce == "mean" else out
    elif weight is not None and weight.dim() == 2:
        out = arcs.sum_heads(rows, weight)
        out = arcs.divided(out, "target") if reduce == "mean" else out
    else:
        out = arcs.sum_sources(columns, weight, mean=reduce == "mean")
    return None if out is None else out.view(len(out), *rows.shape[1:]).movedim(0, arc_rows.arc_dim)


def _reduced(out: torch.Tensor, dim: int, index: Any, arc_rows: Any, reduce: str) -> Any:
    """What torch's scatter functions would add to `out`, or NotImplemented."""
    if not isinstance(index, ArcEnds) or isinstance(out, ArcTensor):
        return NotImplemented
    dim = dim % out.dim()
    if index.dim() > 1 and index.arc_dim != dim:
        return NotImplemented
    check_size(index.arcs, out.size(dim), index.role)
    return reduce_at(index, arc_rows, dim, reduce)


@handles("scatter_add", "scatter_add_", "index_add", "index_add_")
def scatter_add(func: Any, out: Any, dim: int, index: Any, src: Any, *, alpha: float = 1) -> Any:
    total = _reduced(out, dim, index, src, "sum")
    if total is NotImplemented:
        return total
    return (out.add_ if func.__name__.endswith("_") else out.add)(total, alpha=alpha)


@handles("scatter_reduce", "scatter_reduce_")
def scatter_reduce(
    func: Any, out: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Where a vertex has no arc `out` stays."""
    if reduce not in REDUCES or (include_self and REDUCES[reduce] != "sum"):
        return NotImplemented
    found = _reduced(out, dim, index, src, REDUCES[reduce])
    if found is NotImplemented:
        return found
    dim = dim % out.dim()
    has_arc = (index.arcs.degree(index.role) > 0).view(-1, *[1] * (out.dim() - dim - 1))
    found = torch.where(has_arc, found + out if include_self else found, out)
    return out.copy_(found) if func.__name__.endswith("_") else found


@handles("bincount")
def bincount(func: Any, index: Any, weights: Any = None, minlength: int = 0) -> Any:
    if not isinstance(index, ArcEnds):
        return NotImplemented
    return index.arcs.degree(index.role) if weights is None else reduce_at(index, weights, 0, "sum")


@handles("__setitem__")
def setitem(func: Any, out: Any, index: Any, rows: Any) -> Any:
    """`out[ends] = rows`: of several arcs of a vertex the last one counts, as in torch on one process."""
    row = index[0] if isinstance(index, tuple) and len(index) == 2 and index[1] == slice(None) else index
    if isinstance(out, ArcIndex) and isinstance(row, int) and isinstance(rows, ArcEnds) and rows.arcs is out.arcs:
        if rows.role == out.roles[row]:  # edge_index[0] += offset
            out.shifts = (rows.shift, out.shifts[1]) if row % 2 == 0 else (out.shifts[0], rows.shift)
            return None
    if not isinstance(index, ArcEnds) or index.dim() != 1 or isinstance(out, ArcTensor):
        return NotImplemented
    check_size(index.arcs, len(out), index.role)
    rows = rows.plain("__setitem__") if isinstance(rows, ArcTensor) else rows
    rows = rows if isinstance(rows, torch.Tensor) else torch.as_tensor(rows, dtype=out.dtype)
    rows = rows.expand(index.arcs.num_arcs, *out.shape[1:])
    set_by = "target"  # at self-loops both ends are one vertex
    if index.role != set_by:
        loops_only = torch.equal(index.arcs.ids("source"), index.arcs.ids("target"))
        if not min_over_ranks(index.arcs.graph.transport.comm, int(loops_only)):
            return NotImplemented
    has_arc, last = index.arcs.last(rows, set_by)
    out.copy_(torch.where(has_arc.view(-1, *[1] * (out.dim() - 1)), last, out))
    return None
