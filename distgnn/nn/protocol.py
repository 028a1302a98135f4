"""What layers need beside operators: the data of a graph, and what a convolution is to run with itself."""

from collections.abc import MutableMapping
from typing import Any, NamedTuple, Protocol

import torch

from distgnn import ops


class DataGraph(ops.GraphView, Protocol):
    """A graph with its data: what layers and stacks read of it."""

    @property
    def ndata(self) -> MutableMapping[str, torch.Tensor]:
        """Columns over the model's rows."""

    @property
    def edata(self) -> MutableMapping[str, torch.Tensor]:
        """Columns over local arcs."""

    @property
    def edge_weight(self) -> torch.Tensor | None:
        """Weights of local arcs, [A]."""

    @property
    def labels(self) -> torch.Tensor:
        """Of the model's rows: classes, int64, or one column per task."""

    @property
    def train_mask(self) -> torch.Tensor:
        """Which of the model's rows are labelled for training, bool."""

    @property
    def node_types(self) -> torch.Tensor | None:
        """Vertex types, int64 [O]."""

    @property
    def dtype(self) -> torch.dtype:
        """Of features and activations."""

    @property
    def num_feats(self) -> int:
        """Width of the features."""

    @property
    def info(self) -> dict[str, Any]:
        """The `graph` section of the manifest: what the graph has."""

    @property
    def num_values(self) -> int:
        """Values of a vertex that a regression predicts."""

    @property
    def num_classes(self) -> int:
        """Classes, or tasks of a multi-label graph."""

    @property
    def multilabel(self) -> bool:
        """Are labels one column per task?"""

    @property
    def num_relations(self) -> int:
        """Relations in `edata["etype"]`."""

    def num_nodes(self) -> int:
        """The model's rows."""

    def rows_from_owned(self, rows: torch.Tensor) -> torch.Tensor:
        """The model's rows from owned ones. Collective: yes."""

    def has_zero_in_degree(self) -> bool:
        """Is there a vertex without in-arcs anywhere? Collective: the first time."""


class Fusion(NamedTuple):
    """What a stack lets a convolution do in the same function, by `conv(..., fusion=Fusion(...))`: hooks see it.

    `norm` is (gamma, beta) of a layer norm, or None.
    `remat`: keep no row of what is made of constant rows. `is_unread`: with remat, of sage and gcn see
    `ops.ConvSpec`; of others this is made for a backward pass, and nobody reads the result.
    """

    epilogue: ops.Epilogue
    norm: tuple[torch.Tensor, torch.Tensor] | None = None
    may_overwrite_grad: bool = False
    remat: bool = False
    is_unread: bool = False


NOT_FUSED = Fusion(ops.Epilogue())
