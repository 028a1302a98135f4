"""One row for each of many small graphs: the sum, mean or maximum over its vertices, on whatever ranks they are.

Legend: O owned rows, G graphs, D width.
"""

from typing import Any, cast

import numpy as np
import torch

from distgnn.comm import extreme_over_ranks, sum_over_ranks
from distgnn.ops.function import GraphView, linear_map, operator
from distgnn.ops.sums import all_sum, are_top

READOUTS = ("sum", "mean", "max")
NOBODY = np.iinfo(np.int64).max


@operator
def readout(graph: GraphView, rows: torch.Tensor, reduce: str = "mean") -> torch.Tensor:
    """The rows of each graph's vertices as one row, by `graph.graph_ids`.

    Collective: yes, and again in the backward pass.

    Args:
        rows: the model's rows, [O, D].
        reduce: "sum", "mean" or "max".

    Returns: [G, D], the same on every rank; zeros for a graph without vertices.

    Raises: ValueError without graph ids, or for another reduction.

    Notes: the backward pass adds the gradients of all ranks, as `all_sum` does: let each rank's loss be its share
        (`graph.global_mean` of the losses of all graphs, or a loss divided by `graph.num_ranks`). A maximum's gradient
        goes to the vertex that has it, with the smallest global id of several.

    Example:
        >>> molecules = dg.load("molecules")
        >>> dg.ops.readout(molecules, molecules.feats, "mean").shape
        torch.Size([20, 8])
    """
    ids = graph.graph_ids
    if ids is None:
        raise ValueError("the graph has no graph ids: give GraphData the field graph_ids (graph_ids.npy)")
    if reduce not in READOUTS:
        raise ValueError(f"unknown readout {reduce!r}: choose from {', '.join(READOUTS)}")
    owned = rows[: graph.num_owned]
    owned = owned.float() if owned.dtype == torch.bfloat16 else owned
    if reduce == "max":
        return _max(graph, owned)
    total = all_sum(graph, owned.new_zeros(graph.num_graphs, *owned.shape[1:]).index_add(0, ids, owned))
    if reduce == "sum":
        return total
    sizes = all_sum(graph, torch.bincount(ids, minlength=graph.num_graphs)).clamp(min=1)
    return total / sizes.to(total.dtype).view(-1, *[1] * (total.dim() - 1))


def _max(graph: GraphView, rows: torch.Tensor) -> torch.Tensor:
    comm, ids, given = graph.transport.comm, cast(torch.Tensor, graph.graph_ids), rows.detach()
    columns = [1] * (rows.dim() - 1)
    place = ids.view(-1, *columns).expand_as(rows)
    lowest = rows.new_full((graph.num_graphs, *rows.shape[1:]), -torch.inf)
    greatest = _over_ranks(comm, lowest.scatter_reduce(0, place, given, "amax"), "max")
    mine = torch.where(are_top(given, greatest[ids]), torch.from_numpy(graph.owned_ids).view(-1, *columns), NOBODY)
    nobody = torch.full(greatest.shape, NOBODY, dtype=torch.int64)
    winners = _over_ranks(comm, nobody.scatter_reduce(0, place, mine, "amin"), "min")
    won = mine.eq(winners[ids]) & mine.ne(NOBODY)
    found = torch.where(winners == NOBODY, 0, greatest)
    return linear_map(rows, lambda _: found, lambda grad: torch.where(won, _over_ranks(comm, grad, "sum")[ids], 0))


def _over_ranks(comm: Any, values: torch.Tensor, how: str) -> torch.Tensor:
    mine = np.ascontiguousarray(values.detach().numpy())
    return torch.from_numpy(sum_over_ranks(comm, mine) if how == "sum" else extreme_over_ranks(comm, mine, how))
