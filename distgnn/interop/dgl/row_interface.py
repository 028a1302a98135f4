"""DGLRows: the members of DGL's graph interface whose columns are rows of all ranks (`distgnn.rows`)."""

import copy
from typing import Any

import torch

from distgnn.interop.dgl import dispatch


class DGLRows:
    """What `RowGraph` adds to `DGLInterface`. Readouts and counts are those of the whole graph."""

    plain: Any
    num_nodes: Any
    num_edges: Any

    @property
    def _graph(self) -> Any:
        """What DGL's own operators take for the graph's index."""
        known = self.__dict__.get("_index_of_rows")
        if known is None or known.graph is not self:
            known = self.__dict__["_index_of_rows"] = dispatch.index_of(self)
        return known

    def batch_num_nodes(self, ntype: str | None = None) -> torch.Tensor:
        """Vertices per graph of a batch: one graph."""
        return torch.tensor([int(self.num_nodes)])

    def batch_num_edges(self, etype: Any = None) -> torch.Tensor:
        """Arcs per graph of a batch: one graph."""
        return torch.tensor([int(self.num_edges)])

    def local_var(self) -> Any:
        """The same graph; columns set on it are not seen on this one, as in DGL."""
        return copy.copy(self)
