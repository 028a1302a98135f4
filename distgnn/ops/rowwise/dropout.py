"""Dropout whose mask belongs to vertices or arcs, not to ranks: the same for any number of ranks and threads."""

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.entry import operator
from distgnn.ops.function import linear_map
from distgnn.ops.graph_view import GraphView
from distgnn.ops.rowwise.activation import activate, before_relu, relu_dropout


@operator
def dropout(graph: GraphView, rows: torch.Tensor, p: float, site: int, over: str = "vertices") -> torch.Tensor:
    """Zero entries with probability `p` and scale the rest by 1 / (1 - p).

    Args:
        rows: the model's rows, [O, ...], or with over="arcs" one row per local arc, [A, ...].
        site: number of the dropout site in the model; with (seed, training step, global id of the vertex or arc,
            column) it is the key of a counter-based generator, so nothing is stored for the backward pass.

    Source: Philox 4x32-10, Salmon et al., SC'11.

    Example:
        >>> dropped = dg.ops.dropout(graph, torch.ones(graph.num_nodes(), 8), 0.5, site=0)
        >>> sorted(set(dropped.flatten().tolist()))
        [0.0, 2.0]
    """
    source = before_relu(rows) if over == "vertices" else None
    if source is not None:
        return activate(graph, source, relu_dropout(graph, p, site))
    ids = graph.row_ids if over == "vertices" else graph.local.arc_ids
    return dropout_of(graph, rows, ids, p, site)


@operator
def dropout_of(graph: GraphView, rows: torch.Tensor, ids: np.ndarray, p: float, site: int) -> torch.Tensor:
    """The same for rows that have some other global ids, int64 [rows].

    Example:
        >>> dg.ops.dropout_of(graph, torch.ones(2, 3), np.array([10, 20]), 0.5, site=0).shape
        torch.Size([2, 3])
    """
    return _dropped(rows, graph, ids, p, graph.seed, graph.step, site)


@operator
def dropout_by_key(graph: GraphView, rows: torch.Tensor, ids: np.ndarray, p: float, key: int) -> torch.Tensor:
    """The same with a key that stands for seed, step and site."""
    return _dropped(rows, graph, ids, p, key, 0, 0)


def _dropped(
    rows: torch.Tensor, graph: GraphView, ids: np.ndarray, p: float, seed: int, step: int, site: int
) -> torch.Tensor:
    def masked(rows: torch.Tensor) -> torch.Tensor:
        flat = rows.detach().reshape(len(rows), rows.shape[1:].numel())
        out = graph.buffers.empty_like(flat)
        kernels.dropout(as_array(flat), ids, p, seed=seed, step=step, site=site, out=as_array(out))
        return out.view(rows.shape)

    return linear_map(rows, masked, masked)
