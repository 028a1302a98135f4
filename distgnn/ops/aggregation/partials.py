"""Partials go to owners, which combine them with a custom reduction: what a sum cannot merge (max, softmax).

Legend: O owned rows, T target halos (S for role "source"), R rows an owner receives, D width.
"""

from collections.abc import Callable, Iterator

import numpy as np

from distgnn.comm import Transport
from distgnn.ops.protocol import GraphView
from distgnn.partition import ExchangePlan


def merge_at_owners(
    graph: GraphView, copies: np.ndarray, role: str, merge: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Merge the partial rows of all copies of a vertex: [O + T, D] to [O, D].

    Collective: yes.

    Args:
        copies: this rank's partial rows, owned first.
        merge: of two equally shaped blocks of partial rows, the one so far and another rank's. It is called rank by
            rank, so the order is the same in every run.
    """
    merged = copies[: graph.num_owned].copy()
    for rows, partial in received_by_rank(graph, copies[graph.num_owned :], role):
        merged[rows] = merge(merged[rows], partial)
    return merged


def received_by_rank(graph: GraphView, halos: np.ndarray, role: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Send partial rows [T, D] of halos to their owners: (owned rows, other rank's partial rows), in order of ranks.

    Collective: yes.
    """
    plan = graph.local.plan if role == "target" else graph.local.plan.transposed()
    partials = _at_owners(graph.transport, plan, np.ascontiguousarray(halos))
    for rank in np.flatnonzero(np.diff(plan.reduce_indptr)):
        part = slice(plan.reduce_indptr[rank], plan.reduce_indptr[rank + 1])
        yield plan.reduce_rows[part], partials[part]


def _at_owners(transport: Transport, plan: ExchangePlan, halos: np.ndarray) -> np.ndarray:
    """Send halo rows [T, D] to their owners and return what this owner received, [R, D]."""
    tag = transport.begin("merge", halos.shape[1])
    received = np.empty((int(plan.reduce_indptr[-1]), halos.shape[1]), halos.dtype)
    requests: list = []
    for rank, part in _by_rank(received, plan.reduce_indptr):
        requests += transport.receive(part, rank, tag)
    for rank, part in _by_rank(halos, plan.target_indptr):
        requests += transport.send(part, rank, tag)
    transport.wait(requests, tag)
    return received


def _by_rank(rows: np.ndarray, indptr: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for rank in np.flatnonzero(np.diff(indptr)):
        yield int(rank), rows[indptr[rank] : indptr[rank + 1]]
