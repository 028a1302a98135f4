"""Scores of arcs from the rows at both ends (GATv2), without a row per arc; exact on any number of ranks.

    score[arc, h] = <attn[h], leaky_relu(source row[h] + target row[h])>

Backward the sums of both rows are taken again; halos' shares of gradients are added at their owners.

Legend: O owned rows, A local arcs, H heads, F features per head.
"""

from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array, onto_owners, with_halos
from distgnn.ops.edges.on_arcs import check_rows
from distgnn.ops.entry import operator
from distgnn.ops.function import Function
from distgnn.ops.protocol import GraphView


@operator
def pair_scores(
    graph: GraphView, sources: torch.Tensor, targets: torch.Tensor, attn: torch.Tensor, slope: float
) -> torch.Tensor:
    """Scores of local arcs, [A, H].

    Collective: yes, and again in the backward pass.

    Args: sources, targets: owned rows [O, H, F], float32 or float64; attn [1, H, F]; slope: of the leaky ReLU, from 0
        to 1.

    Example:
        >>> rows = graph.feats.view(-1, 2, 4)
        >>> dg.ops.pair_scores(graph, rows, rows, torch.ones(1, 2, 4), slope=0.2).shape
        torch.Size([290, 2])
    """
    check_rows(graph, sources)
    flat = (rows.flatten(1).contiguous() for rows in (sources, targets, attn))
    return _PairScores.apply(*flat, graph, attn.shape[1], slope)


class _PairScores(Function):
    @staticmethod
    def forward(
        ctx: Any,
        sources: torch.Tensor,
        targets: torch.Tensor,
        attn: torch.Tensor,
        graph: GraphView,
        heads: int,
        slope: float,
    ) -> torch.Tensor:
        ctx.graph, ctx.slope = graph, slope
        ctx.save_for_backward(sources, targets, attn)
        rows = with_halos(graph, as_array(sources), "source"), with_halos(graph, as_array(targets), "target")
        return torch.from_numpy(
            kernels.pair_scores(*_grouped(graph, "target"), *rows, as_array(attn), heads, slope=slope)
        )

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        graph, grads = ctx.graph, as_array(grad)
        sources, targets, attn = map(as_array, ctx.saved_tensors)
        sources, targets = with_halos(graph, sources, "source"), with_halos(graph, targets, "target")
        more = attn, grads
        to_targets, to_attn = kernels.pair_scores_backward(
            *_grouped(graph, "target"), sources, targets, *more, slope=ctx.slope
        )
        to_sources, _ = kernels.pair_scores_backward(
            *_grouped(graph, "source"), targets, sources, *more, slope=ctx.slope
        )
        shares = onto_owners(graph, to_sources, "source"), onto_owners(graph, to_targets, "target"), to_attn
        return *map(torch.from_numpy, shares), None, None, None


def _grouped(graph: GraphView, role: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(indptr, copies at the other ends, arc numbers) by the copy at one end."""
    group = graph.local_arcs.grouped[role]
    return group.indptr, group.others, group.arcs
