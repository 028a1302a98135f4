"""Where DGL itself must be told of a DistGraph: `dgl.ops`, `edge_softmax` and `dgl.reverse`.

Most of DGL asks the graph and needs no change. The operators of `dgl.ops`, `edge_softmax` among them, hand
`graph._graph` to C code instead. A DistGraph's `_graph` is an `Index` without C data; asked for the first time, it puts
a dispatcher in front of three names inside DGL, which sends an `Index` to us and everything else on to DGL. A process
that never gives a DistGraph to DGL has DGL as it was.
"""

import functools
import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

from distgnn.errors import InputError
from distgnn.ops.edges import messages
from distgnn.ops.edges.softmax import edge_softmax
from distgnn.ops.entry import opaque


def index_of(graph: Any) -> Any:
    """The graph index that DGL's operators get for a DistGraph."""
    _dispatch_in_dgl()
    return _index_class()(graph)


def _gspmm(index: Any, op: str, reduce: str, lhs: Any, rhs: Any) -> torch.Tensor:
    if not index.reversed:
        return messages.gspmm(index.graph, op, reduce, lhs, rhs)
    if reduce != "sum":
        raise InputError(f"{reduce} over a reversed graph cannot run distributed: only sums can")
    arc_rows = messages.gsddmm(index.graph, op, lhs, rhs, "v", "e")
    return messages.reduce_arcs(index.graph, arc_rows, reduce, "source")


def _gsddmm(index: Any, op: str, lhs: Any, rhs: Any, lhs_target: str, rhs_target: str) -> torch.Tensor:
    swapped = {"u": "v", "v": "u", "e": "e"} if index.reversed else {"u": "u", "v": "v", "e": "e"}
    return messages.gsddmm(index.graph, op, lhs, rhs, swapped[lhs_target], swapped[rhs_target])


def _softmax(index: Any, logits: torch.Tensor, eids: Any = "__ALL__", norm_by: str = "dst") -> torch.Tensor:
    if not isinstance(eids, str):
        raise InputError("edge_softmax over some edges cannot run distributed: leave eids out")
    if index.reversed:
        norm_by = {"dst": "src", "src": "dst"}[norm_by]
    return edge_softmax(index.graph, logits, norm_by)


OURS: dict[tuple[str, str], Callable] = {
    ("dgl.ops.spmm", "gspmm_internal"): _gspmm,
    ("dgl.ops.sddmm", "gsddmm_internal"): _gsddmm,
    ("dgl.ops.edge_softmax", "edge_softmax_internal"): _softmax,
}


@functools.cache
def _dispatch_in_dgl() -> None:
    for (module_name, name), ours in OURS.items():
        module = importlib.import_module(module_name)
        setattr(module, name, _dispatcher(ours, getattr(module, name)))


def _dispatcher(ours: Callable, theirs: Callable) -> Callable:
    @opaque
    @functools.wraps(theirs)
    def dispatch(index: Any, *arguments: Any, **options: Any) -> Any:
        function = ours if isinstance(index, _index_class()) else theirs
        return function(index, *arguments, **options)

    return dispatch


@functools.cache
def _index_class() -> type:
    """`Index`: a DGL graph index without C data, so that nothing in DGL can take it for a graph of its own."""
    from dgl import ndarray
    from dgl.heterograph_index import HeteroGraphIndex

    class Index(HeteroGraphIndex):
        def __new__(cls, graph: Any, is_reversed: bool = False) -> Any:
            return HeteroGraphIndex.__new__(cls)

        def __init__(self, graph: Any, is_reversed: bool = False):
            self.graph, self.reversed = graph, is_reversed

        dtype = "int64"
        ctx = ndarray.cpu(0)
        metagraph = SimpleNamespace(find_edge=lambda etype: (0, 0))  # one edge type, between the one vertex type

        def number_of_ntypes(self) -> int:
            return 1

        number_of_etypes = number_of_ntypes

        def num_nodes(self, ntype: int = 0) -> int:
            return self.graph.num_nodes()

        def num_edges(self, etype: int = 0) -> int:
            return self.graph.num_edges()

        number_of_nodes, number_of_edges = num_nodes, num_edges

        def get_relation_graph(self, etype: int) -> "Index":
            return self

        def is_pinned(self) -> bool:
            return False

        def reverse(self) -> "Index":
            return Index(self.graph, not self.reversed)

    for name in vars(HeteroGraphIndex).keys() - vars(Index).keys():
        if not name.startswith("__"):
            setattr(Index, name, _refusal(name))
    return Index


def _refusal(name: str) -> property:
    def refuse(self: Any) -> NoReturn:
        raise InputError(
            f"DGL asks for {name!r} of a graph that is spread over ranks: use update_all, apply_edges, edge_softmax "
            "and degrees, or the layers of distgnn.nn"
        )

    return property(refuse)
