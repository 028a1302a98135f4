"""Edge weights divided by the weighted degrees of their ends."""

from typing import Any

import torch

from distgnn import ops
from distgnn.errors import InputError
from distgnn.ops.graph_view import GraphView


def normalized_weight(graph: GraphView, edge_weight: torch.Tensor) -> torch.Tensor:
    """w(u, v) / sqrt(sum of weights out of u * sum of weights into v), of every local arc [A].

    Collective: yes, and again in the backward pass.

    Raises: InputError for a weight that is not positive.

    Source: `dgl.nn.EdgeWeightNorm("both")` 1.1.3.
    """
    weight = edge_weight.reshape(-1)
    if not bool((weight > 0).all()):
        row = int((weight <= 0).long().argmax())
        raise InputError(
            f"edge weights must be positive to be divided by the root of their sums: that of arc {row} of this rank is "
            f"{float(weight[row])}"
        )
    ends = [ops.to_arcs(graph, ops.from_arcs(graph, weight, role).rsqrt(), role) for role in ("source", "target")]
    return weight * ends[0] * ends[1]


def constant(edge_weight: torch.Tensor | None) -> bool:
    """Do these weights need no gradient?"""
    return edge_weight is None or not (edge_weight.requires_grad and torch.is_grad_enabled())


def scales_of(graph: GraphView, weight: torch.Tensor | None, source_kind: str) -> tuple[Any, ...]:
    """What D^-1/2 A D^-1/2 multiplies sources and targets by: nothing where weights are normalised already.

    Args: source_kind: which degree divides at the source, "in" or "out".
    """
    if weight is not None:
        return None, None
    return graph.degree_scale(source_kind, -0.5), graph.degree_scale("in", -0.5)
