"""DGLInterface: what DGL's modules ask of a graph, on one rank's owned vertices and local arcs.

A message function of the user is called once per rank with all its arcs: it must treat each edge by itself, as DGL
asks of it too. Reducers are built-in, because a vertex's arcs lie on several ranks.

Frame: named columns over the rows of a graph, as `ndata` and `edata` show them.
"""

import copy
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import torch

from distgnn.errors import InputError
from distgnn.interop.dgl import dispatch
from distgnn.interop.pyg.api import INSTEAD as PYG_INSTEAD
from distgnn.ops.edges import messages


class Frame(MutableMapping[str, torch.Tensor]):
    """A mapping from names to tensors that all have `num_rows` rows; `kind` names the rows in errors."""

    def __init__(self, num_rows: int, kind: str):
        self.num_rows = num_rows
        self.kind = kind
        self._columns: dict[str, torch.Tensor] = {}

    def __getitem__(self, name: str) -> torch.Tensor:
        if name not in self._columns:
            raise KeyError(f"no {self.kind} data named {name!r}; there are {sorted(self._columns)}")
        return self._columns[name]

    def __setitem__(self, name: str, column: torch.Tensor) -> None:
        if len(column) != self.num_rows:
            raise ValueError(f"{self.kind} data {name!r} has {len(column)} rows: this part has {self.num_rows}")
        self._columns[name] = column

    def __delitem__(self, name: str) -> None:
        del self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def copy(self) -> "Frame":
        """The same columns in a frame of their own: what is set there is not seen here."""
        other = Frame(self.num_rows, self.kind)
        other._columns = dict(self._columns)
        return other


@dataclass
class Frames:
    """The columns of a graph, over its vertices and over its arcs."""

    vertices: Frame
    arcs: Frame

    def copy(self) -> "Frames":
        """The same columns in frames of their own."""
        return Frames(self.vertices.copy(), self.arcs.copy())


class ByType(MutableMapping[str, Any]):
    """Columns of several types: `graph.ndata["h"]` is a dict by type, of those that have it, and takes one."""

    def __init__(self, frames: Mapping[Any, MutableMapping[str, Any]], key_of: Callable[[Any], Any] = lambda key: key):
        self._frames, self._key_of = frames, key_of

    def __getitem__(self, name: str) -> dict[Any, Any]:
        found = {kind: frame[name] for kind, frame in self._frames.items() if name in frame}
        if not found:
            raise KeyError(f"no type has a column {name!r}; there are {list(self)}")
        return found

    def __setitem__(self, name: str, columns: Mapping[Any, Any]) -> None:
        if not isinstance(columns, Mapping):
            raise InputError(f"column {name!r} of several types: give a dict of rows by type")
        for kind, column in columns.items():
            self._frames[self._key_of(kind)][name] = column

    def __delitem__(self, name: str) -> None:
        for kind in self[name]:
            del self._frames[kind][name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for frame in self._frames.values() for name in frame))

    def __len__(self) -> int:
        return len(list(iter(self)))


class TypeView:
    """`graph.nodes` and `graph.edges`: `[type].data` has columns, a call gives ids, of vertices only."""

    def __init__(self, frame_of: Callable[[Any], MutableMapping[str, Any]], ids_of: Callable[[Any], Any]):
        self._frame_of, self._ids_of = frame_of, ids_of

    def __getitem__(self, kind: Any) -> SimpleNamespace:
        return SimpleNamespace(data=self._frame_of(kind))

    def __call__(self, kind: Any = None, **names: Any) -> Any:
        return self._ids_of(next(iter(names.values()), kind))


Self = TypeVar("Self", bound="DGLInterface")

NODE_TYPE, EDGE_TYPE = "_N", "_E"

ON_SOME = "use update_all or apply_edges over all arcs, and mask the result"
OF_TYPES = "a DistGraph has one vertex and one edge type: use RelGraphConv with edata['etype'] (distgnn.nn.RGCN)"
OF_STRUCTURE = (
    "a rank has its own arcs only: use update_all, apply_edges or distgnn.ops, or prepare the graph before it is cut "
    "(GraphData.from_dgl, distgnn partition)"
)
STRUCTURE = """
adj adjacency_matrix adj_external adj_tensors inc incidence_matrix all_edges in_edges out_edges find_edges edge_ids
edge_subgraph has_edges_between predecessors successors subgraph in_subgraph add_edges remove_edges add_nodes
remove_nodes add_self_loop remove_self_loop reverse line_graph sample_neighbors reorder_graph
""".split()
INSTEAD = {  # what a DGLGraph (or a PyG Data) has and a DistGraph cannot have, and what to do
    **dict.fromkeys("send_and_recv pull push prop_nodes prop_edges filter_nodes filter_edges".split(), ON_SOME),
    **dict.fromkeys(("multi_update_all", "cross_type_reduce", "metagraph", "to_canonical_etype"), OF_TYPES),
    **dict.fromkeys(STRUCTURE, OF_STRUCTURE),
    **PYG_INSTEAD,
}
AS_IT_IS = ("cpu", "int", "long", "formats", "create_formats_")  # methods that give the same graph


class NotDistributed(InputError, AttributeError):
    """Something of a DGLGraph that a DistGraph does not have; an AttributeError, so that `hasattr` says no."""


class DGLInterface:
    """The message-passing part of `dgl.DGLGraph`, as a base class that keeps the columns.

    Columns, sizes and names need nothing but `frames`. Message passing needs a graph that operators can run on
    (`GraphView`): the class that inherits from this one must be such a graph.

    Args:
        frames: the columns; owned by this object.
        num_ranks: parts of the graph.
    """

    is_block = False
    is_homogeneous = True
    device: torch.device = torch.device("cpu")
    idtype: torch.dtype = torch.int64
    batch_size = 1

    def __init__(self, frames: Frames, num_ranks: int):
        self._frames = frames
        self.num_ranks = num_ranks

    def num_nodes(self) -> int:
        """The rows a model sees on this rank: one per owned vertex."""
        return self._frames.vertices.num_rows

    number_of_nodes = num_src_nodes = num_dst_nodes = number_of_src_nodes = number_of_dst_nodes = num_nodes

    def num_edges(self) -> int:
        """Local arcs of this rank."""
        return self._frames.arcs.num_rows

    number_of_edges = num_edges

    ntypes: Any = property(lambda graph: [NODE_TYPE])
    etypes: Any = property(lambda graph: [EDGE_TYPE])
    canonical_etypes: Any = property(lambda graph: [(NODE_TYPE, EDGE_TYPE, NODE_TYPE)])
    srctypes = dsttypes = ntypes

    if not TYPE_CHECKING:  # to a type checker every name would exist

        def __getattr__(self, name: str):
            if name in AS_IT_IS:
                return self.to
            if name in INSTEAD:
                raise NotDistributed(f"graph.{name} cannot run distributed: {INSTEAD[name]}")
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    # --- data ------------------------------------------------------------------------------------------------

    ndata: Any = property(attrgetter("_frames.vertices"), doc="Columns over owned vertices.")
    srcdata = dstdata = ndata
    edata: Any = property(attrgetter("_frames.arcs"), doc="Columns over local arcs.")

    @property
    def nodes(self) -> TypeView:
        """`nodes[type].data`, for code that names the one type."""
        dispatch.tell_dgl()
        return TypeView(lambda kind: self.ndata, refuse_ids)

    srcnodes = dstnodes = nodes

    @property
    def edges(self) -> TypeView:
        """`edges[type].data`, for code that names the one type."""
        dispatch.tell_dgl()
        return TypeView(lambda kind: self.edata, refuse_ids)

    def local_scope(self) -> AbstractContextManager[None]:
        """Columns set inside are gone outside, as in DGL."""
        dispatch.tell_dgl()
        return changed_within((vars(self), "_frames", self._frames.copy()))

    def local_var(self: Self) -> Self:
        """The same graph; columns set on it are not seen on this one, as in DGL."""
        made = copy.copy(self)
        made._frames = self._frames.copy()
        made.__dict__.pop("_graph", None)  # an index knows its graph
        return made

    def batch_num_nodes(self, ntype: str | None = None) -> torch.Tensor:
        """Rows per graph of a batch: one graph, of which a rank has its own.

        Raises: NotDistributed on several ranks, but for `dgl.broadcast_nodes` (ChebConv), which repeats a row: readouts
            ask for the same number and would see this rank's rows only.
        """
        if self.num_ranks > 1 and traceback.extract_stack(limit=2)[0].name != "broadcast_nodes":
            raise NotDistributed(
                "a readout over all vertices cannot run distributed: reduce this rank's rows with torch and add the "
                "ranks' results with distgnn.ops.all_sum"
            )
        return torch.tensor([self.num_nodes()])

    def to(self: Self, *device: Any, **options: Any) -> Self:
        """This graph: it lives on the CPU, in the formats that it has."""
        return self

    # --- message passing -------------------------------------------------------------------------------------

    def update_all(
        self, message_func: Any, reduce_func: Any, apply_node_func: Callable[..., Any] | None = None, etype: Any = None
    ) -> None:
        """DGL's message passing over the whole graph; the result lands in `dstdata`.

        Collective: yes, and again in the backward pass.

        Args:
            message_func: of `dgl.function`, or one of edges (src, dst, data) that treats each edge by itself.
            reduce_func: `dgl.function.sum`, `mean`, `max` or `min`. A mean divides by the in-degree in the whole graph.
            apply_node_func: called with nodes (data) afterwards.

        Raises: InputError for what cannot run distributed, naming what can.
        """
        name, rows = reduced(self, message_func, reduce_func)
        self.dstdata[name] = rows
        if apply_node_func is not None:
            self.apply_nodes(apply_node_func)

    def apply_edges(self, func: Any, edges: Any = "__ALL__", etype: Any = None) -> None:
        """DGL's function on edges, of all arcs; the result lands in `edata`. Collective: yes, and backward."""
        if not isinstance(edges, str):
            raise InputError("apply_edges on some edges cannot run distributed: leave edges out and mask the result")
        self.edata.update(made_on_arcs(self, func))

    def apply_nodes(self, func: Callable[..., Any], v: Any = "__ALL__", ntype: Any = None) -> None:
        """DGL's function on nodes, of all owned vertices; the result lands in `dstdata`."""
        if not isinstance(v, str):
            raise InputError("apply_nodes on some vertices cannot run distributed: leave v out and mask the result")
        self.dstdata.update(func(Batch(self.num_dst_nodes(), self.dstdata)))

    @cached_property
    def _graph(self) -> Any:
        """What DGL's own operators take for the graph's index."""
        return dispatch.index_of(self)


@contextmanager
def changed_within(*changes: tuple[dict[str, Any], str, Any]) -> Iterator[None]:
    """While the block runs, names have other values. Args: changes: (attributes of an object, a name, its value)."""
    outside = [(state, name, state[name]) for state, name, _ in changes]
    for state, name, value in changes:
        state[name] = value
    try:
        yield
    finally:
        for state, name, value in outside:
            state[name] = value


def refuse_ids(*_: Any, **__: Any) -> NoReturn:
    raise InputError(f"the vertices and edges of the whole graph are not on one rank: {OF_STRUCTURE}")


def reduced(graph: Any, message_func: Any, reduce_func: Any) -> tuple[str, Any]:
    """(name, rows) of what messages add up to at targets: 0 where there is none. Collective: yes, and backward.

    Args: as of `DGLInterface.update_all`.
    """
    reducer = _name_of(reduce_func)
    if reducer not in messages.REDUCERS or not hasattr(reduce_func, "msg_field"):
        names = "/".join(messages.REDUCERS)
        raise InputError(
            f"update_all(…, {reducer}) cannot run distributed, because the arcs of a vertex lie on several ranks: "
            f"reduce with the built-in functions dgl.function.{names}, or use the layers of distgnn.nn"
        )
    name, wanted = _name_of(message_func), reduce_func.msg_field
    builtin = _is_builtin(message_func)
    if builtin and message_func.out_field != wanted:
        raise InputError(
            f"the message function writes {message_func.out_field!r}, the reduce function reads {wanted!r}: give both "
            "one name"
        )
    if builtin and name == "copy_u":
        out = messages.gspmm(graph, "copy_lhs", reducer, graph.srcdata[message_func.in_field], None)
    elif builtin and name.startswith("u_") and name.endswith("_e"):
        rows, arc_rows = graph.srcdata[message_func.lhs_field], graph.edata[message_func.rhs_field]
        out = messages.gspmm(graph, message_func.binary_op, reducer, rows, arc_rows)
    else:
        made = made_on_arcs(graph, message_func)
        if wanted not in made:
            raise InputError(f"the message function gives {sorted(made)}, the reduce function {wanted!r}")
        out = messages.reduce_arcs(graph, made[wanted], reducer)
    return reduce_func.out_field, out


def made_on_arcs(graph: Any, func: Any) -> dict[str, torch.Tensor]:
    """What a message function puts on the arcs, by name."""
    if _is_builtin(func):
        frames = {"u": graph.srcdata, "v": graph.dstdata, "e": graph.edata}
        if func.name.startswith("copy_"):
            end = func.name[-1]
            return {func.out_field: messages.on_arcs(graph, frames[end][func.in_field], end)}
        left, op, right = func.name.split("_")
        rows = frames[left][func.lhs_field], frames[right][func.rhs_field]
        return {func.out_field: messages.gsddmm(graph, op, *rows, left, right)}
    if not callable(func):
        raise InputError(f"{func!r} is no message function: use dgl.function, or a function of edges")
    ends = {"src": Ends(graph, "source"), "dst": Ends(graph, "target")}
    made = func(Batch(graph.num_edges(), graph.edata, canonical_etype=graph.canonical_etypes[0], **ends))
    for name, column in made.items():
        if len(column) != graph.num_edges():
            raise InputError(
                f"message function {_name_of(func)} gives {len(column)} rows {name!r} for {graph.num_edges()} arcs: to "
                "run distributed it must treat each edge by itself"
            )
    return made


class Batch:
    """What a user's function sees: `data`, and for edges `src`, `dst` and `canonical_etype`."""

    def __init__(self, size: int, data: Any, **others: Any):
        self._size = size
        self.data = data
        self.__dict__.update(others)

    def batch_size(self) -> int:
        return self._size

    __len__ = batch_size

    def __getattr__(self, name: str) -> NoReturn:
        raise InputError(f"a function of edges or nodes has no {name!r} on several ranks: use src, dst and data")


class Ends(Mapping[str, torch.Tensor]):
    """Columns at one end of every local arc, brought there when first asked for. Collective: `[name]`."""

    def __init__(self, graph: Any, role: str):
        self._graph, self._role = graph, role
        self._columns = graph.srcdata if role == "source" else graph.dstdata
        self._made: dict[str, torch.Tensor] = {}

    def __getitem__(self, name: str) -> torch.Tensor:
        if name not in self._made:
            self._made[name] = messages.to_arcs(self._graph, self._columns[name], self._role)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _is_builtin(func: Any) -> bool:
    return hasattr(func, "out_field") and hasattr(func, "name")


def _name_of(func: Any) -> str:
    return str(getattr(func, "name", None) or getattr(func, "__name__", type(func).__name__))
