"""The face of a DGLGraph: what DGL's modules ask of a graph, on one rank's owned vertices and local arcs."""

from contextlib import contextmanager
from functools import cached_property
from types import SimpleNamespace

import torch

from distgnn import dgl_bridge, dgl_index
from distgnn.errors import InputError
from distgnn.frame import Frame

NODE_TYPE, EDGE_TYPE = "_N", "_E"


class DGLFace:
    """The message-passing part of `dgl.DGLGraph`, for a class with `_frames`, `num_nodes` and `num_edges`."""

    is_block = False
    is_homogeneous = True
    device = torch.device("cpu")
    idtype = torch.int64
    batch_size = 1

    @property
    def ntypes(self) -> list[str]:
        """Names of vertex types: one."""
        return [NODE_TYPE]

    srctypes = dsttypes = ntypes

    @property
    def etypes(self) -> list[str]:
        """Names of edge types: one."""
        return [EDGE_TYPE]

    @property
    def canonical_etypes(self) -> list[tuple[str, str, str]]:
        """(source type, edge type, target type): one."""
        return [(NODE_TYPE, EDGE_TYPE, NODE_TYPE)]

    # --- data ------------------------------------------------------------------------------------------------

    @property
    def ndata(self) -> Frame:
        """Columns over owned vertices."""
        return self._frames["node"]

    srcdata = dstdata = ndata

    @property
    def edata(self) -> Frame:
        """Columns over local arcs."""
        return self._frames["edge"]

    @property
    def nodes(self) -> "OneType":
        """`nodes[type].data`, for code that names the one type."""
        return OneType(self.ndata)

    srcnodes = dstnodes = nodes

    @property
    def edges(self) -> "OneType":
        """`edges[type].data`, for code that names the one type."""
        return OneType(self.edata)

    @contextmanager
    def local_scope(self):
        """Columns set inside are gone outside, as in DGL."""
        outside = self._frames
        self._frames = {kind: frame.copy() for kind, frame in outside.items()}
        try:
            yield
        finally:
            self._frames = outside

    def local_var(self) -> "LocalVar":
        """The same graph; columns set on it are not seen on this one, as in DGL."""
        return LocalVar(self)

    def batch_num_nodes(self, ntype: str | None = None) -> torch.Tensor:
        """Rows per graph of a batch: one graph."""
        return torch.tensor([self.num_nodes()])

    def to(self, device, **options):
        """This graph: it lives on the CPU."""
        return self

    # --- message passing -------------------------------------------------------------------------------------

    def update_all(self, message_func, reduce_func, apply_node_func=None, etype=None) -> None:
        """DGL's message passing over the whole graph; see `dgl_bridge.update_all`. Collective: yes."""
        dgl_bridge.update_all(self, message_func, reduce_func, apply_node_func)

    def apply_edges(self, func, edges="__ALL__", etype=None) -> None:
        """DGL's function on edges, of all arcs; see `dgl_bridge.apply_edges`. Collective: yes."""
        if not isinstance(edges, str):
            raise InputError("apply_edges on some edges cannot run distributed: leave edges out and mask the result")
        dgl_bridge.apply_edges(self, func)

    def apply_nodes(self, func, v="__ALL__", ntype=None) -> None:
        """DGL's function on nodes, of all owned vertices."""
        if not isinstance(v, str):
            raise InputError("apply_nodes on some vertices cannot run distributed: leave v out and mask the result")
        dgl_bridge.apply_nodes(self, func)

    @cached_property
    def _graph(self):
        """What DGL's own operators take for the graph's index."""
        return dgl_index.index_of(self)


class LocalVar(DGLFace):
    """A graph with columns of its own; everything else is asked of the graph it was made from."""

    def __init__(self, graph: DGLFace):
        self._base = graph
        self._frames = {kind: frame.copy() for kind, frame in graph._frames.items()}

    def __getattr__(self, name: str):
        return getattr(self._base, name)


class OneType:
    """A view by type name of a graph that has one type."""

    def __init__(self, data: Frame):
        self._view = SimpleNamespace(data=data)

    def __getitem__(self, name) -> SimpleNamespace:
        return self._view
