"""`cut_edges`: the one door to all cutting methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distgnn.errors import InputError
from distgnn.partition import streaming
from distgnn.partition.owners import balanced_owners
from distgnn.partition.vertex_cut import VertexCut

ORDERS = ("shuffled", "stored")


class Method(NamedTuple):
    """A cutting method: `assign(edge_list, num_parts, seed, order) -> edge_part [M]`, and one line about it."""

    assign: Callable[..., np.ndarray]
    about: str


METHODS = {
    "libra": Method(streaming.libra, "DistGNN's rule over a shuffled stream with a balance guard"),
    "dbh": Method(lambda edges, parts, seed, order: streaming.dbh(edges, parts, seed), "hash of the lower-degree end"),
    "random": Method(lambda edges, parts, seed, order: streaming.deal(edges, parts, seed), "edges dealt at random"),
}


def cut_edges(edge_list, num_parts: int, method: str = "libra", seed: int = 0, order: str = "shuffled") -> VertexCut:
    """Cut an edge list into parts.

    Args:
        edge_list: an `EdgeList`.
        num_parts: number of parts, at least 1. Parts may stay empty where there are fewer edges than parts.
        method: a name in `METHODS`.
        seed: the same seed gives the same cut.
        order: "shuffled" or "stored": in which order a streaming method sees the rows.
    Returns: a `VertexCut`; both arcs of a two-way row are in one part, owners are among the copies.
    Raises: InputError.
    """
    check_request(num_parts, method, seed, order)
    edge_part = METHODS[method].assign(edge_list, num_parts, seed, order)
    return VertexCut(num_parts, edge_part, balanced_owners(edge_list, edge_part, num_parts))


def check_request(num_parts: int, method: str, seed: int, order: str) -> None:
    """Raise `InputError` unless these arguments of `cut_edges` are ones it takes."""
    if isinstance(num_parts, bool) or not isinstance(num_parts, int | np.integer) or not 1 <= num_parts < 2**15:
        raise InputError(f"the number of parts must be a whole number from 1 to 32767, not {num_parts!r}")
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    if order not in ORDERS:
        raise InputError(f"unknown order {order!r}: choose one of {', '.join(ORDERS)}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InputError(f"the seed must be a whole number from 0 to 2**63 - 1, not {seed!r}")
