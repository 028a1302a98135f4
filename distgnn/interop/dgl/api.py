"""DGLInterface: what DGL's modules ask of a graph, on one rank's owned vertices and local arcs."""

import copy
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import torch

from distgnn.errors import InputError
from distgnn.interop.dgl import dispatch, messages
from distgnn.interop.dgl.frame import Frame, Frames, TypeView
from distgnn.interop.pyg.api import INSTEAD as PYG_INSTEAD

Self = TypeVar("Self", bound="DGLInterface")

NODE_TYPE, EDGE_TYPE = "_N", "_E"

ON_SOME = "use update_all or apply_edges over all arcs, and mask the result"
OF_TYPES = "a DistGraph has one vertex and one edge type: use RelGraphConv with edata['etype'] (distgnn.nn.RGCN)"
OF_STRUCTURE = (
    "a rank has its own arcs only: use update_all, apply_edges or distgnn.ops, or prepare the graph before it is cut "
    "(GraphData.from_dgl, distgnn partition)"
)
INSTEAD = {  # what a DGLGraph (or a PyG Data) has and a DistGraph cannot have, and what to do
    **dict.fromkeys(
        ("send_and_recv", "pull", "push", "prop_nodes", "prop_edges", "filter_nodes", "filter_edges"), ON_SOME
    ),
    **dict.fromkeys(("multi_update_all", "cross_type_reduce", "metagraph", "to_canonical_etype"), OF_TYPES),
    **dict.fromkeys(
        ("adj", "adjacency_matrix", "adj_external", "adj_tensors", "inc", "incidence_matrix"), OF_STRUCTURE
    ),
    **dict.fromkeys(("all_edges", "in_edges", "out_edges", "find_edges", "edge_ids", "edge_subgraph"), OF_STRUCTURE),
    **dict.fromkeys(("has_edges_between", "predecessors", "successors", "subgraph", "in_subgraph"), OF_STRUCTURE),
    **PYG_INSTEAD,
    **dict.fromkeys(("add_edges", "remove_edges", "add_nodes", "remove_nodes", "add_self_loop"), OF_STRUCTURE),
    **dict.fromkeys(("remove_self_loop", "reverse", "line_graph", "sample_neighbors", "reorder_graph"), OF_STRUCTURE),
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

    @property
    def ntypes(self) -> list[str]:
        return [NODE_TYPE]

    srctypes = dsttypes = ntypes

    @property
    def etypes(self) -> list[str]:
        return [EDGE_TYPE]

    @property
    def canonical_etypes(self) -> list[tuple[str, str, str]]:
        return [(NODE_TYPE, EDGE_TYPE, NODE_TYPE)]

    if not TYPE_CHECKING:  # to a type checker every name would exist

        def __getattr__(self, name: str):
            if name in AS_IT_IS:
                return self.to
            if name in INSTEAD:
                raise NotDistributed(f"graph.{name} cannot run distributed: {INSTEAD[name]}")
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    # --- data ------------------------------------------------------------------------------------------------

    @property
    def ndata(self) -> Frame:
        """Columns over owned vertices."""
        return self._frames.vertices

    srcdata = dstdata = ndata

    @property
    def edata(self) -> Frame:
        """Columns over local arcs."""
        return self._frames.arcs

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

    @contextmanager
    def local_scope(self) -> Iterator[None]:
        """Columns set inside are gone outside, as in DGL."""
        dispatch.tell_dgl()
        outside = self._frames
        self._frames = outside.copy()
        try:
            yield
        finally:
            self._frames = outside

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
        self,
        message_func: Any,
        reduce_func: Any,
        apply_node_func: Callable[..., Any] | None = None,
        etype: Any = None,
    ) -> None:
        """DGL's message passing over the whole graph; see `messages.update_all`. Collective: yes."""
        messages.update_all(self, message_func, reduce_func, apply_node_func)

    def apply_edges(self, func: Any, edges: Any = "__ALL__", etype: Any = None) -> None:
        """DGL's function on edges, of all arcs; see `messages.apply_edges`. Collective: yes."""
        if not isinstance(edges, str):
            raise InputError("apply_edges on some edges cannot run distributed: leave edges out and mask the result")
        messages.apply_edges(self, func)

    def apply_nodes(self, func: Callable[..., Any], v: Any = "__ALL__", ntype: Any = None) -> None:
        """DGL's function on nodes, of all owned vertices."""
        if not isinstance(v, str):
            raise InputError("apply_nodes on some vertices cannot run distributed: leave v out and mask the result")
        messages.apply_nodes(self, func)

    @cached_property
    def _graph(self) -> Any:
        """What DGL's own operators take for the graph's index."""
        return dispatch.index_of(self)


def refuse_ids(*_: Any, **__: Any) -> NoReturn:
    raise InputError(f"the vertices and edges of the whole graph are not on one rank: {OF_STRUCTURE}")
