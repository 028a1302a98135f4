"""The exchanges as differentiable functions, each the other's gradient.

Legend: O owned rows, S / T source and target halos, D width. Each verb takes a role: which halos.

    halo_broadcast   owned rows [O, D] -> halos [S or T, D]          halo_reduce   its transpose: halos are added
    with_halos       owned rows [O, D] -> copies [O + S or T, D]     onto_owners   its transpose: copies are added
                                                                     merge_at_owners   the same by max, softmax, …
"""

from collections.abc import Callable

import numpy as np
import torch

from distgnn.comm import EpochExchange, Exchange
from distgnn.ops.function import GraphView, linear_map, operator


@operator
def halo_broadcast(graph: GraphView, rows: torch.Tensor, role: str = "source") -> torch.Tensor:
    """Owned rows [O, D] travel to the halos of a role: returns [S, D] for "source", [T, D] for "target".

    Collective: yes; the backward pass is `halo_reduce` from the same halos.

    Example:
        >>> dg.ops.halo_broadcast(graph, graph.feats).shape  # one rank has no halo
        torch.Size([0, 8])
    """
    return linear_map(rows, of_arrays(_sent, graph, role), of_arrays(_added, graph, role))


@operator
def halo_reduce(graph: GraphView, partials: torch.Tensor, role: str = "target") -> torch.Tensor:
    """Partial sums of the halos of a role travel to their owners and are added: returns [O, D].

    Collective: yes; the backward pass is `halo_broadcast` to the same halos.

    Example:
        >>> dg.ops.halo_reduce(graph, torch.zeros(0, 8)).shape
        torch.Size([60, 8])
    """
    return linear_map(partials, of_arrays(_added, graph, role), of_arrays(_sent, graph, role))


def _sent(graph: GraphView, rows: np.ndarray, role: str) -> np.ndarray:
    return _broadcast(graph, rows, role).copy()


def _added(graph: GraphView, halos: np.ndarray, role: str) -> np.ndarray:
    out = np.zeros((graph.num_at(role), halos.shape[1]), halos.dtype)
    return reduce_onto(_reducing(graph, role), halos, out)


def of_arrays(run: Callable, graph: GraphView, role: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """`run(graph, array, role)` as a function of tensors."""
    return lambda rows: torch.from_numpy(run(graph, as_array(rows), role))


def with_halos(graph: GraphView, rows: np.ndarray, role: str) -> np.ndarray:
    """Owned rows [O, D] and behind them the halo copies of a role. Collective: yes."""
    halos = _broadcast(graph, rows, role)
    return np.concatenate([rows, halos]) if len(halos) else rows


def onto_owners(graph: GraphView, copies: np.ndarray, role: str) -> np.ndarray:
    """Copies [O + S or T, D] are added at their owners, over the rows of these: [O, D]. Collective: yes."""
    count = graph.num_at(role)
    return reduce_onto(_reducing(graph, role), copies[count:], copies[:count])


def merge_at_owners(
    graph: GraphView, copies: np.ndarray, role: str, merge: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Merge the partial rows of all copies of a vertex at its owner, where that is no sum: [O + T, D] to [O, D].

    Collective: yes.

    Args:
        copies: this rank's partial rows, owned first.
        merge: of two equally shaped blocks of partial rows, the one so far and another rank's. It is called rank by
            rank, so the order is the same in every run.
    """
    count = graph.num_at(role)
    merged = copies[:count].copy()
    for rows, partial in _reducing(graph, role).reduce_by_rank(np.ascontiguousarray(copies[count:])):
        merged[rows] = merge(merged[rows], partial)
    return merged


def as_array(rows: torch.Tensor) -> np.ndarray:
    """The same memory as C-contiguous numpy; bfloat16 as its bit patterns, uint16."""
    rows = rows.detach().contiguous()
    return rows.view(torch.uint16).numpy() if rows.dtype == torch.bfloat16 else rows.numpy()


def _broadcast(graph: GraphView, rows: np.ndarray, role: str) -> np.ndarray:
    """Halo rows of a role; valid until the next broadcast of this width."""
    exchange = graph.exchange if role == "source" else graph.transposed_exchange
    exchange.start_broadcast(rows)
    return exchange.finish_broadcast()


def reduce_onto(exchange: Exchange | EpochExchange, halos: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Rows of halos are added to owned rows `out` [O, D] at their owners, in place. Collective: yes."""
    if isinstance(exchange, Exchange) and exchange.transport.in_pieces:
        exchange.reduce_made(lambda piece, into: np.copyto(into, halos[piece]), out)
        return out
    buffer = exchange.target_rows(halos)
    np.copyto(buffer, halos)
    exchange.start_reduce(buffer)
    exchange.finish_reduce(out)
    return out


def _reducing(graph: GraphView, role: str) -> Exchange:
    return graph.exchange if role == "target" else graph.transposed_exchange
