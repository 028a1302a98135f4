"""PyG's norms over the vertices of the whole graph: what `distribute` puts in place of those that would see one rank's.

Parameters, buffers and their names are PyG's. A norm within a row (LayerNorm with mode="node", MessageNorm) needs none
of this, and the BatchNorm1d inside PyG's BatchNorm and DiffGroupNorm is swapped as torch's own.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from distgnn.errors import InputError
from distgnn.nn.conv.graph_module import GraphModule
from distgnn.nn.norms import BatchNorm1d, GraphNorm, PairNorm, graph_mean
from distgnn.rows import RowTensor


class OfOneGraph(GraphModule):
    """A norm that is called as PyG's are: (x, batch, batch_size), where all vertices are of one graph."""

    weight: Any
    bias: Any

    def __init__(self, norm: nn.Module):
        super().__init__()
        self.eps: Any = getattr(norm, "eps", 0.0)
        self._parameters, self._buffers = norm._parameters, norm._buffers

    def forward(self, x: torch.Tensor, batch: Any = None, batch_size: int | None = None) -> torch.Tensor:
        if batch is not None:
            raise InputError("a DistGraph is one graph: call the norm without batch")
        return self.normalised(x)

    def normalised(self, x: torch.Tensor) -> torch.Tensor:
        """The norm of owned rows [O, D]. Collective: yes, and again in the backward pass."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Of the norm that was swapped."""
        raise InputError("reset the parameters before distgnn.nn.distribute")


class WholeLayerNorm(OfOneGraph):
    """LayerNorm with mode="graph": one mean and one standard deviation of all numbers of all rows."""

    def normalised(self, x: torch.Tensor) -> torch.Tensor:
        graph = self.graph_of(None)
        x = x - graph_mean(graph, x.mean(-1, keepdim=True))
        out = x / (graph_mean(graph, x.square().mean(-1, keepdim=True)).sqrt() + self.eps)
        return out if self.weight is None else out * self.weight + self.bias


class MeanSubtraction(OfOneGraph):
    """MeanSubtractionNorm: rows centred over all vertices."""

    def normalised(self, x: torch.Tensor) -> torch.Tensor:
        return x - graph_mean(self.graph_of(None), x)


class GraphSize(OfOneGraph):
    """GraphSizeNorm: rows over the square root of the number of vertices."""

    def normalised(self, x: torch.Tensor) -> torch.Tensor:
        count = len(x) if isinstance(x, RowTensor) else self.graph_of(None).num_global_nodes
        return x * count**-0.5


class Wrapped(OfOneGraph):
    """GraphNorm, PairNorm or InstanceNorm by the norm of `distgnn.nn` that computes the same."""

    def __init__(self, norm: nn.Module, ours: GraphModule):
        super().__init__(norm)
        ours._parameters, ours._buffers = norm._parameters, norm._buffers
        self.__dict__["ours"] = ours  # not a child: names in state_dict stay

    def normalised(self, x: torch.Tensor) -> torch.Tensor:
        return self.__dict__["ours"].train(self.training)(x, self.graph_of(None))


def _instance(norm: Any) -> Wrapped:
    settings = norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats
    return Wrapped(norm, BatchNorm1d(*settings))


SWAPS: dict[str, Callable[[Any], GraphModule]] = {
    "LayerNorm": WholeLayerNorm,
    "MeanSubtractionNorm": MeanSubtraction,
    "GraphSizeNorm": GraphSize,
    "GraphNorm": lambda norm: Wrapped(norm, GraphNorm(norm.in_channels, norm.eps)),
    "PairNorm": lambda norm: Wrapped(norm, PairNorm(norm.scale, norm.scale_individually, norm.eps)),
    "InstanceNorm": _instance,
}


def over_all_vertices(name: str, module: nn.Module) -> GraphModule:
    """The same norm over the vertices of all ranks, with the same parameters, buffers and mode.

    Raises: InputError for one that has no such form here.
    """
    kind = type(module).__name__
    if kind not in SWAPS:
        raise InputError(f"{name} is a {kind}: its statistics would be per rank; use BatchNorm or GraphNorm")
    return SWAPS[kind](module).train(module.training)
