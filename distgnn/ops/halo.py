"""halo_broadcast and halo_reduce: the two exchanges as differentiable functions, each the other's gradient."""

import numpy as np
import torch


def halo_broadcast(graph, rows: torch.Tensor) -> torch.Tensor:
    """Owned rows [O, D] travel to the source halos: returns [S, D].

    Collective: yes; the backward pass is `halo_reduce` from the same halos.
    """
    return _Broadcast.apply(rows, graph)


def halo_reduce(graph, partials: torch.Tensor) -> torch.Tensor:
    """Partial sums of target halos [T, D] travel to their owners and are added: returns [O, D].

    Collective: yes; the backward pass is `halo_broadcast` to the same halos.
    """
    return _Reduce.apply(partials, graph)


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, graph):
        ctx.graph = graph
        return _broadcast(graph.exchange, rows)

    @staticmethod
    def backward(ctx, grad):
        return _reduce(ctx.graph.transposed_exchange, grad, ctx.graph.num_owned), None


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, partials, graph):
        ctx.graph = graph
        return _reduce(graph.exchange, partials, graph.num_owned)

    @staticmethod
    def backward(ctx, grad):
        return _broadcast(ctx.graph.transposed_exchange, grad), None


def _broadcast(exchange, rows: torch.Tensor) -> torch.Tensor:
    exchange.start_broadcast(rows.detach().contiguous().numpy())
    return torch.from_numpy(exchange.finish_broadcast().copy())


def _reduce(exchange, partials: torch.Tensor, num_owned: int) -> torch.Tensor:
    rows = partials.detach().contiguous().numpy()
    targets = exchange.target_rows(rows)
    np.copyto(targets, rows)
    out = np.zeros((num_owned, rows.shape[1]), rows.dtype)
    exchange.start_reduce(targets)
    exchange.finish_reduce(out)
    return torch.from_numpy(out)
