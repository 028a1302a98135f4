"""Where PyG itself must be told of a DistGraph.

    MessagePassing.__call__       a DistGraph among the arguments becomes its `edge_index`
    forward of a few layers       `fused.py`: a kernel instead of torch's functions one by one
    softmax, scatter, degree,     answered in one exchange; without it they run as PyG wrote them, on the tensors of
    gcn_norm, remove_self_loops   `tensors.py`: the same numbers, more passes
    global_…_pool                 refuse the rows of one rank
    assortativity, subgraph, …    exact over all ranks or refused: `refused.py`

A dispatcher is put in front of these names once, when a process with PyG loads a DistGraph or hands one to PyG. Every
call without a DistGraph goes on to PyG.
"""

import functools
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental import symbolic_shapes
from torch.utils._pytree import tree_leaves

from distgnn.errors import InputError
from distgnn.interop.in_front import in_front, put_in_front
from distgnn.interop.pyg import functions, fused, norm, refused
from distgnn.interop.pyg.tensors import ArcEnds, ArcIndex, ArcNorm, ArcTensor, local_in
from distgnn.rows.row_tensor import RowTensor, local_of, rows_of

_spread: "weakref.WeakSet[Any]" = weakref.WeakSet()  # graphs that are spread over ranks
_known_sizes: tuple[int, ...] = ()  # as `_part_sizes` found them last: torch guards a tuple of a module


def register(graph: Any) -> None:
    if graph.num_ranks > 1:
        _spread.add(graph)
        _part_sizes()
    dispatch_in_pyg()


@functools.cache
def dispatch_in_pyg() -> None:
    from torch_geometric.nn.conv import MessagePassing

    setattr(MessagePassing, "__call__", in_front(_of_graph, _module_call, _concerns))  # noqa: B010 - mypy refuses a method
    fused.dispatch_in_layers(_concerns)
    transforms = sys.modules.get("torch_geometric.transforms")
    if transforms is not None:
        put_in_front(transforms.BaseTransform, "__call__", refused.check_transform)
    found: dict[int, Callable[..., Any]] = {}
    for name, (module, ours) in FUNCTIONS.items():
        theirs = getattr(sys.modules.get(module), name, None)
        if theirs is not None:  # None: another version of PyG: its function runs on our tensors as it is
            found[id(theirs)] = in_front(ours, theirs, _concerns)
    for place in list(sys.modules.values()):  # scripts too: `from torch_geometric.nn import global_mean_pool`
        names = getattr(place, "__dict__", None) or {}
        for name, ours in [(name, found[id(value)]) for name, value in names.items() if id(value) in found]:
            setattr(place, name, ours)


def _module_call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """What modules have at this moment: `torch.fx`, and so `to_hetero`, replaces it while it traces."""
    return torch.nn.Module.__call__(self, *args, **kwargs)


def _of_graph(self: Any, *args: Any, **kwargs: Any) -> Any:
    """MessagePassing.__call__ that takes a DistGraph for an `edge_index`."""
    from torch_geometric.nn.conv import MessagePassing

    given = (*args, *kwargs.values())
    if "forward" in vars(self):  # somebody's own, as that of `dg.fit`: it takes what it is given
        return NotImplemented
    if any(map(_is_graph, given)):
        args = tuple(one.edge_index if _is_graph(one) else one for one in args)
        kwargs = {name: one.edge_index if _is_graph(one) else one for name, one in kwargs.items()}
        return MessagePassing.__call__(self, *args, **kwargs)
    if _spread:
        _check_part(given)
    return NotImplemented


def _is_graph(one: Any) -> bool:
    return hasattr(type(one), "forward_arcs")  # of its type: a Proxy of `torch.fx` has whatever it is asked for


def _check_part(arguments: tuple[Any, ...]) -> None:
    """Raise InputError where one rank's rows meet an edge_index of one process."""
    tensors = [one for one in tree_leaves(arguments) if isinstance(one, torch.Tensor)]
    if any(isinstance(one, ArcTensor) for one in tensors):
        return
    of_arcs = any(one.dim() == 2 and len(one) == 2 and one.dtype == torch.int64 for one in tensors)
    if of_arcs and any(one.is_floating_point() and is_part(one) for one in tensors):
        raise InputError(
            "edge_index has the vertices of one process and x those of one rank: give the layer the DistGraph, or its "
            "graph.edge_index, instead of edge_index"
        )


def is_part(rows: torch.Tensor) -> bool:
    """Has this as many rows as this rank owns vertices of a graph that is spread over ranks?"""
    if isinstance(rows, RowTensor) or not rows.dim():
        return isinstance(rows, RowTensor)
    if len(rows) not in _part_sizes():
        return False
    gc.collect()  # a graph that nobody holds any more refuses nothing
    return len(rows) in _part_sizes()


def _part_sizes() -> tuple[int, ...]:
    """Owned vertices of each graph whose columns are one rank's rows; kept for what torch compiles."""
    global _known_sizes
    graphs = [graph for graph in _spread if "face" not in vars(graph)]
    _known_sizes = tuple(sorted({graph.num_owned for graph in graphs if graph.num_owned != graph.num_global_nodes}))
    return _known_sizes


_surely: Callable[[Any], bool] = getattr(symbolic_shapes, "guard_or_false", bool)  # torch 2.8


def _is_size_of_a_part(size: Any) -> bool:
    """Torch compiles it: a size that depends on what is computed is of no part.

    It may go over a function twice, and a graph may die between: so it is told what is known, not who is alive.
    """
    if not torch.compiler.is_compiling():
        return size in _part_sizes()
    return any(_surely(size == known) for known in _known_sizes)


def _concerns(values: tuple[Any, ...] | list[Any]) -> bool:
    """Is a graph that is cut, its rows or arcs, or what `is_part` refuses, among the arguments? Torch compiles it."""
    for one in values:
        if isinstance(one, (tuple, list)):
            if _concerns(one):
                return True
        elif isinstance(one, torch.Tensor):
            if getattr(type(one), "knows_rows", False) or getattr(type(one), "stands_for_arcs", False):
                return True
            if one.dim() and one.is_floating_point() and _is_size_of_a_part(one.shape[0]):
                return True
        elif hasattr(one, "forward_arcs"):
            return True
    return False


# --- functions of PyG: each has the arguments of its namesake ----------------------------------------------------


def _softmax(
    src: Any, index: Any = None, ptr: Any = None, num_nodes: int | None = None, dim: int = 0
) -> torch.Tensor | Any:
    if not isinstance(index, ArcEnds) or index.dim() != 1:
        return NotImplemented
    functions.check_size(index.arcs, num_nodes, index.role)
    place = dim % max(src.dim(), 1)
    rows = src.plain("softmax") if isinstance(src, ArcTensor) else local_in(src, index.arcs, None, place)
    out = index.arcs.softmax(rows.movedim(dim, 0), index.role).movedim(0, dim)
    return rows_of(out, index.arcs.space, dim)


def _scatter(src: Any, index: Any, dim: int = 0, dim_size: int | None = None, reduce: str = "sum") -> Any:
    if not isinstance(index, ArcEnds):
        return _refuses_a_part(src, index)
    if index.dim() != 1 or reduce not in functions.REDUCES:
        return NotImplemented
    functions.check_size(index.arcs, dim_size, index.role)
    dim = dim % src.dim()
    out = functions.reduce_at(index, local_in(src, index.arcs, None, dim), dim, functions.REDUCES[reduce])
    return rows_of(out, index.arcs.graph.space_at(index.role), dim)


def _degree(index: Any, num_nodes: int | None = None, dtype: torch.dtype | None = None) -> Any:
    if not isinstance(index, ArcEnds):
        return NotImplemented
    functions.check_size(index.arcs, num_nodes, index.role)
    # A copy: layers write into it (MFConv).
    degrees = index.arcs.degree(index.role).to(dtype or torch.get_default_dtype(), copy=True)
    return rows_of(degrees, index.arcs.graph.space_at(index.role))


def _remove_self_loops(edge_index: Any, edge_attr: Any = None) -> Any:
    if not isinstance(edge_index, ArcIndex):
        return NotImplemented
    edge_index.arcs.check_square("self-loops are removed")
    if not edge_index.arcs.is_whole:
        return NotImplemented
    without = norm.without_self_loops_of_all(edge_index.arcs)
    if edge_attr is not None and without.positions is not None:
        edge_attr = rows_of(local_in(edge_attr, edge_index.arcs)[without.positions], without.space)
    return ArcIndex.of(without, edge_index.roles), edge_attr


def _add_remaining_self_loops(edge_index: Any, edge_attr: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Of an ordinary tensor of numbers of all arcs as of rows, so that a gradient comes back."""
    ordinary = isinstance(edge_attr, torch.Tensor) and not isinstance(edge_attr, RowTensor | ArcTensor)
    if not isinstance(edge_index, ArcIndex) or not ordinary:
        return NotImplemented
    arcs = edge_index.arcs
    rows = rows_of(arcs.space.local_part(local_of(edge_attr), 0), arcs.space)
    theirs: Any = sys.modules["torch_geometric.utils"]
    return theirs.add_remaining_self_loops(edge_index, rows, *args, **kwargs)


def _gcn_norm(
    edge_index: Any,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    improved: bool = False,
    add_self_loops: bool = True,
    flow: str = "source_to_target",
    dtype: torch.dtype | None = None,
) -> Any:
    if not isinstance(edge_index, ArcIndex):
        return NotImplemented
    arcs, roles = edge_index.arcs, edge_index.roles
    arcs.check_square("GCN's normalisation counts arcs at both ends", "take SAGEConv or GraphConv")
    functions.check_size(arcs, num_nodes)
    dtype = dtype or torch.get_default_dtype()
    if edge_weight is not None or not arcs.is_whole or roles != ("source", "target") or dtype not in functions.FLOATS:
        return NotImplemented
    found = norm.norm_of_all(arcs, add_self_loops, "target" if flow == "source_to_target" else "source", dtype)
    return ArcIndex.of(found.arcs), ArcNorm.of(found)


def _refuses_a_part(x: Any, batch: Any = None, *_args: Any, **_kwargs: Any) -> Any:
    """A pool of vertices' rows would be one of this rank's; rows of all ranks are pooled by torch's functions."""
    if isinstance(x, RowTensor):
        return NotImplemented
    if isinstance(x, torch.Tensor) and not isinstance(x, ArcTensor) and is_part(x):
        raise InputError(
            "a pool over all vertices has one rank's rows only: add up the ranks' rows with distgnn.ops.all_sum(graph, "
            "x.sum(0)), and divide by graph.num_global_nodes for a mean"
            if batch is None
            else "a pool by graph has one rank's rows only: save the graph with graph_ids and call distgnn.ops.readout("
            'graph, x, "sum|mean|max")'
        )
    return NotImplemented


FUNCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {  # name -> (the module of PyG that has it, ours)
    "softmax": ("torch_geometric.utils._softmax", _softmax),
    "scatter": ("torch_geometric.utils._scatter", _scatter),
    "degree": ("torch_geometric.utils._degree", _degree),
    "remove_self_loops": ("torch_geometric.utils.loop", _remove_self_loops),
    "add_remaining_self_loops": ("torch_geometric.utils.loop", _add_remaining_self_loops),
    "gcn_norm": ("torch_geometric.nn.conv.gcn_conv", _gcn_norm),
    **{f"global_{how}_pool": ("torch_geometric.nn.pool.glob", _refuses_a_part) for how in ("add", "mean", "max")},
    **refused.FUNCTIONS,
}
