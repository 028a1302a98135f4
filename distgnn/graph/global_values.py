"""Numbers of the whole graph from every rank's rows: means with a gradient, and rows in the original vertex order."""

from typing import Any

import numpy as np
import torch

from distgnn.comm import gather_arrays, sum_over_ranks
from distgnn.ops.function import Function, operator


@operator
def global_mean(graph: Any, values: torch.Tensor) -> torch.Tensor:
    """The mean over the values of all ranks, for losses and metrics.

    Collective: yes, forward only.

    Args:
        values: any number of floats on each rank, also none; of losses of rows, say.

    Returns: Scalar in the dtype of `values`, the same on every rank; 0 where no rank has a value.

    Notes: the gradient of a value is 1 / (count over all ranks): each rank's backward pass gives its share of the
        gradient, and the sum over ranks (`dg.sum_gradients`) the gradient of this mean.
    """
    return _GlobalMean.apply(values, graph.transport)


class _GlobalMean(Function):
    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, transport: Any) -> torch.Tensor:
        comm, ctx.transport = transport.comm, transport
        mine = np.array([values.detach().double().sum().item(), values.numel()])
        total, count = sum_over_ranks(comm, mine) if comm.size > 1 else mine
        ctx.shape, ctx.count = values.shape, max(float(count), 1.0)
        return torch.tensor(total / ctx.count, dtype=values.dtype)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.transport.has_global_loss = True
        return (grad / ctx.count).expand(ctx.shape), None


def is_global_mean(result: torch.Tensor, start: torch.Tensor) -> bool:
    """Does a `global_mean` lie between `start` and `result`, as autograd recorded them?"""
    waiting, seen = [result.grad_fn], {start.grad_fn}
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, _GlobalMean._backward_cls):
            return True
        waiting += [before for before, _ in node.next_functions]
    return False


def gather_rows(graph: Any, rows: torch.Tensor | np.ndarray, root: int | None = 0) -> np.ndarray | None:
    """Rows of owned vertices of all ranks as one array in the original vertex order.

    Collective: yes.

    Args:
        rows: [O, ...] of this rank (predictions, embeddings); rows beyond the owned ones are left out.
        root: the rank that gets them; None: every rank does.

    Returns: a numpy array [N, ...] on `root` (or everywhere), None on other ranks.
    """
    values = rows.detach() if isinstance(rows, torch.Tensor) else torch.from_numpy(np.asarray(rows))
    mine = (values.float() if values.dtype == torch.bfloat16 else values).numpy()[: graph.num_owned]
    ids, pieces = gather_arrays(graph.comm, graph.owned_ids, root), gather_arrays(graph.comm, mine, root)
    if ids is None or pieces is None:
        return None
    everything = np.empty((graph.num_global_nodes, *mine.shape[1:]), mine.dtype)
    for theirs, rows_of_theirs in zip(ids, pieces, strict=True):
        everything[theirs] = rows_of_theirs
    return everything
