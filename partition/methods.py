"""`cut_edges`: the one door to all cutting methods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from distgnn.errors import InputError
from distgnn.partition.baselines import streaming
from distgnn.partition.baselines.metis import metis_owners
from distgnn.partition.baselines.vertex_cover import cover_arcs
from distgnn.partition.cmr.improve import refine_cut
from distgnn.partition.cmr.method import cmr
from distgnn.partition.cmr.roles import refine_roles
from distgnn.partition.core.owners import balanced_owners, owners_among
from distgnn.partition.core.shares import part_shares
from distgnn.partition.core.vertex_cut import VertexCut
from distgnn.partition.epoch.epoch_cut import cut_for_epoch
from distgnn.partition.epoch.epoch_price import EpochPrices
from distgnn.partition.hierarchical import cut_twice
from distgnn.partition.stream.method import cmr_stream

ORDERS = ("shuffled", "stored")
UPDATES = ("owners", "copies")
OBJECTIVES = ("rows", "epoch")


class Draft(NamedTuple):
    """What a method finds: the part of each row [M]; perhaps a key [N] to sort owned rows by, owners [N], or masks
    (sources, targets) as of `owners_among`."""

    edge_part: np.ndarray
    vertex_order: np.ndarray | None = None
    owner: np.ndarray | None = None
    masks: tuple[np.ndarray, np.ndarray] | None = None


class Method(NamedTuple):
    """A cutting method: `draft(edge_list, shares, seed, order) -> Draft`, and one line about it."""

    draft: Callable[..., Draft]
    about: str


def _libra(edge_list, shares, seed, order):
    return Draft(streaming.libra(edge_list, shares, seed, order))


def _hdrf(edge_list, shares, seed, order):
    return Draft(streaming.hdrf(edge_list, shares, seed, order))


def _dbh(edge_list, shares, seed, order):
    return Draft(streaming.dbh(edge_list, shares, seed))


def _random(edge_list, shares, seed, order):
    return Draft(streaming.deal(edge_list, shares, seed))


def _cmr(edge_list, shares, seed, order):
    return Draft(*cmr(edge_list, shares))


def _cmr_stream(edge_list, shares, seed, order):
    edge_part, number, masks = cmr_stream(edge_list, shares)
    return Draft(edge_part, number, masks=masks)


def _metis(edge_list, shares, seed, order):
    owner = metis_owners(edge_list, shares, seed)
    return Draft(cover_arcs(edge_list, owner, shares), owner=owner)


METHODS = {
    "cmr": Method(_cmr, "cluster, merge, refine: fewest copies at balanced parts"),
    "cmr-stream": Method(_cmr_stream, "the same from sorted rows without an adjacency, for graphs larger than memory"),
    "libra": Method(_libra, "DistGNN's rule over a shuffled stream with a balance guard"),
    "hdrf": Method(_hdrf, "highest degree replicated first, over a shuffled stream"),
    "metis": Method(_metis, "METIS's owners, crossing edges placed by minimum vertex covers; arcs not balanced"),
    "dbh": Method(_dbh, "hash of the lower-degree end"),
    "random": Method(_random, "edges dealt at random"),
}


def cut_edges(
    edge_list,
    num_parts: int,
    method: str = "cmr",
    seed: int = 0,
    order: str = "shuffled",
    refine: bool = False,
    capacities: Sequence[float] | None = None,
    groups: int = 1,
    update: str = "owners",
    objective: str = "rows",
    prices: EpochPrices | None = None,
) -> VertexCut:
    """Cut an edge list into parts.

    Args:
        edge_list: an `EdgeList`.
        num_parts: number of parts, at least 1. Parts may stay empty where there are fewer edges than parts.
        method: a name in `METHODS`.
        seed: the same seed gives the same cut (`cmr` and `cmr-stream` have no use for it).
        order: "shuffled" or "stored": in which order a streaming method sees the rows.
        refine: move single edges, and on graphs that are not large borders, while that makes copies fewer (`cmr` always
            does, `cmr-stream` moves single edges).
        capacities: relative speeds of the ranks, see `part_shares`; arcs, copies and owned vertices are shared out
            in proportion.
        groups: cut between so many groups of consecutive parts first (the machines), then inside each.
        update: where training will update vertices, which decides what `cmr` and refinement count. "copies": copies.
            "owners": rows on the wire; they differ where rows are one-way, and each role of a copy is charged alone.
        objective: "rows": few rows (or copies) under the balances. "epoch": the shortest epoch of the worst rank at
            these prices, for `cmr` and refined cuts; balances are what comes of it.
        prices: see `EpochPrices`.
    Returns: a `VertexCut`; both arcs of a two-way row are in one part; owners are among the copies, except
        METIS's, and where owned vertices could not be balanced otherwise.
    Raises: InputError.
    """
    check_request(num_parts, method, seed, order, groups, update)
    check_objective(objective, prices, method, refine, groups)
    shares = part_shares(num_parts, capacities)
    draft = functools.partial(METHODS[method].draft, seed=seed, order=order)
    roles = update == "owners" and not edge_list.two_way
    if groups > 1:
        level = functools.partial(_with_roles, draft) if roles and method == "cmr" else draft
        found = Draft(*cut_twice(edge_list, shares, groups, level))
    else:
        found = draft(edge_list, shares)
    edge_part, vertex_order, owner, masks = found
    if refine and not method.startswith("cmr"):
        edge_part, owner = refine_cut(edge_list, edge_part, shares), None
    refined = refine or method == "cmr"
    if owner is None and masks is not None:
        owner = owners_among(*masks, shares, update)
    elif owner is None:
        owner = balanced_owners(edge_list, edge_part, shares, update=update)
    if refined and roles and groups == 1 and num_parts > 1:
        edge_part, owner = refine_roles(edge_list, edge_part, owner, shares)
    if objective == "epoch":
        edge_part, owner = cut_for_epoch(edge_list, edge_part, owner, shares, prices, update)
    given = None if capacities is None else np.array(capacities, dtype=np.float64)
    return VertexCut(num_parts, edge_part, owner, order=vertex_order, capacities=given)


def _with_roles(draft: Callable[..., Draft], edge_list, shares: np.ndarray) -> Draft:
    """One level of a cut in two, its arcs moved for update on owners; who owns what is decided at the end."""
    found = draft(edge_list, shares)
    if len(shares) == 1:
        return found
    owner = balanced_owners(edge_list, found.edge_part, shares)
    return found._replace(edge_part=refine_roles(edge_list, found.edge_part, owner, shares)[0])


def check_request(num_parts: int, method: str, seed: int, order: str, groups: int = 1, update: str = "owners") -> None:
    """Raise `InputError` unless these arguments of `cut_edges` are ones it takes."""
    if isinstance(num_parts, bool) or not isinstance(num_parts, int | np.integer) or not 1 <= num_parts < 2**15:
        raise InputError(f"the number of parts must be a whole number from 1 to 32767, not {num_parts!r}")
    if isinstance(groups, bool) or not isinstance(groups, int | np.integer) or groups < 1 or num_parts % groups:
        raise InputError(f"the number of groups must divide {num_parts} parts, not be {groups!r}")
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    if order not in ORDERS:
        raise InputError(f"unknown order {order!r}: choose one of {', '.join(ORDERS)}")
    if update not in UPDATES:
        raise InputError(f"unknown update {update!r}: choose one of {', '.join(UPDATES)}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InputError(f"the seed must be a whole number from 0 to 2**63 - 1, not {seed!r}")


def check_objective(objective: str, prices: EpochPrices | None, method: str, refine: bool, groups: int) -> None:
    """Raise `InputError` unless `cut_edges` can cut for this objective."""
    if objective not in OBJECTIVES:
        raise InputError(f"unknown objective {objective!r}: choose one of {', '.join(OBJECTIVES)}")
    if objective == "rows":
        return
    if prices is None:
        raise InputError("objective epoch needs prices: distgnn calibrate --ranks 2 --prices FILE measures them")
    if groups > 1:
        raise InputError("objective epoch has one price of a row for all pairs of ranks: cut in one level")
    if method == "cmr-stream" or not (refine or method == "cmr"):
        raise InputError(f"objective epoch moves edges and owners of cmr and of refined cuts, not of {method}")
