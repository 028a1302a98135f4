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
    """A norm that is called as PyG's are: (x, batch, batch_size), where all vertices are of one graph.

    Args: normalise: the norm of owned rows [O, D], called with this module and them. Collective: yes, and again in the
        backward pass.
    """

    weight: Any
    bias: Any

    def __init__(self, norm: nn.Module, normalise: Callable[[Any, torch.Tensor], torch.Tensor]):
        super().__init__()
        self.eps: Any = getattr(norm, "eps", 0.0)
        self.normalise = normalise
        self._parameters, self._buffers = norm._parameters, norm._buffers

    def forward(self, x: torch.Tensor, batch: Any = None, batch_size: int | None = None) -> torch.Tensor:
        if batch is not None:
            raise InputError("a DistGraph is one graph: call the norm without batch")
        return self.normalise(self, x)

    def reset_parameters(self) -> None:
        """Of the norm that was swapped."""
        raise InputError("reset the parameters before distgnn.nn.distribute")


def _layer(self: OfOneGraph, x: torch.Tensor) -> torch.Tensor:
    """LayerNorm with mode="graph": one mean and one standard deviation of all numbers of all rows."""
    graph = self.graph_of(None)
    x = x - graph_mean(graph, x.mean(-1, keepdim=True))
    out = x / (graph_mean(graph, x.square().mean(-1, keepdim=True)).sqrt() + self.eps)
    return out if self.weight is None else out * self.weight + self.bias


def _centred(self: OfOneGraph, x: torch.Tensor) -> torch.Tensor:
    """MeanSubtractionNorm: rows centred over all vertices."""
    return x - graph_mean(self.graph_of(None), x)


def _by_size(self: OfOneGraph, x: torch.Tensor) -> torch.Tensor:
    """GraphSizeNorm: rows over the square root of the number of vertices."""
    count = len(x) if isinstance(x, RowTensor) else self.graph_of(None).num_global_nodes
    return x * count**-0.5


def _by_ours(self: OfOneGraph, x: torch.Tensor) -> torch.Tensor:
    """GraphNorm, PairNorm or InstanceNorm by the norm of `distgnn.nn` that computes the same."""
    return self.__dict__["ours"].train(self.training)(x, self.graph_of(None))


def _wrapped(norm: nn.Module, ours: GraphModule) -> OfOneGraph:
    made = OfOneGraph(norm, _by_ours)
    ours._parameters, ours._buffers = norm._parameters, norm._buffers
    made.__dict__["ours"] = ours  # not a child: names in state_dict stay
    return made


SWAPS: dict[str, Callable[[Any], GraphModule]] = {
    "LayerNorm": lambda norm: OfOneGraph(norm, _layer),
    "MeanSubtractionNorm": lambda norm: OfOneGraph(norm, _centred),
    "GraphSizeNorm": lambda norm: OfOneGraph(norm, _by_size),
    "GraphNorm": lambda norm: _wrapped(norm, GraphNorm(norm.in_channels, norm.eps)),
    "PairNorm": lambda norm: _wrapped(norm, PairNorm(norm.scale, norm.scale_individually, norm.eps)),
    "InstanceNorm": lambda norm: _wrapped(
        norm, BatchNorm1d(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
    ),
}


def over_all_vertices(name: str, module: nn.Module) -> GraphModule:
    """The same norm over the vertices of all ranks, with the same parameters, buffers and mode.

    Raises: InputError for one that has no such form here.
    """
    kind = type(module).__name__
    if kind not in SWAPS:
        raise InputError(f"{name} is a {kind}: its statistics would be per rank; use BatchNorm or GraphNorm")
    return SWAPS[kind](module).train(module.training)
