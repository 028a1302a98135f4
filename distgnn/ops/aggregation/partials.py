"""Partials go to owners, which combine them with a custom reduction: what a sum cannot merge (max, softmax).

Legend: O owned rows, T target halos (S for role "source"), R rows an owner receives, D width.
"""

from collections.abc import Callable, Iterator

import numpy as np

from distgnn.ops.protocol import GraphView


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
    exchange = graph.exchange if role == "target" else graph.transposed_exchange
    yield from exchange.reduce_by_rank(np.ascontiguousarray(halos))
