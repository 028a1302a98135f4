"""What layers share: the graph that comes with a call or before it, checks of it, and what runs with a convolution."""

from typing import Any, NamedTuple

import torch
from torch import nn

from distgnn import ops
from distgnn.errors import InputError
from distgnn.ops.aggregation.aggregator import Scales
from distgnn.ops.function import GraphView


class GraphModule(nn.Module):
    """Base of dropout and norms: the graph comes with the call, or once by `distgnn.nn.distribute(model, graph)`."""

    graph: GraphView | None = None

    def graph_of(self, given: GraphView | None) -> GraphView:
        """The graph of this call.

        Raises: ValueError where there is none.
        """
        graph = given if given is not None else self.graph
        if graph is None:
            kind = type(self).__name__
            raise ValueError(f"this {kind} knows no graph: pass it, or call distgnn.nn.distribute(model, graph) first")
        return graph


def check_in_arcs(layer: Any, graph: GraphView, who: str = "") -> None:
    """Raise InputError, on all ranks, for vertices without in-arcs where the layer does not allow them."""
    if not layer.allow_zero_in_degree and graph.has_zero_in_degree():
        raise InputError(
            f"there are vertices without in-arcs{who}: partition with --self-loops add, or set "
            "allow_zero_in_degree=True"
        )


class Fusion(NamedTuple):
    """What a stack lets a convolution do in the same function, by `conv(..., fusion=Fusion(...))`: hooks see it.

    `norm` is (gamma, beta) of a layer norm, or None. `own`: a matrix [I, O] whose product with the layer's own rows is
    added (a residual), of sage and gcn. In a chain of layers (`distgnn/ops/rowwise/chain.py`):
    `remat`: keep no row of what is made of constant rows.
    """

    epilogue: ops.Epilogue
    norm: tuple[torch.Tensor, torch.Tensor] | None = None
    remat: bool = False
    own: torch.Tensor | None = None

    def of(self, scales: Scales, edge_weight: torch.Tensor | None) -> ops.ConvSpec:
        """An aggregation with these scales of sources and targets, and what follows it."""
        return ops.ConvSpec(scales, edge_weight, self.epilogue, remat=self.remat)


NOT_FUSED = Fusion(ops.Epilogue())


def constant(edge_weight: torch.Tensor | None) -> bool:
    """Do these weights need no gradient?"""
    return edge_weight is None or not (edge_weight.requires_grad and torch.is_grad_enabled())
