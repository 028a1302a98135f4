"""`cut_edges`: entry point of all cutting methods."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from distgnn.config.cut import CUT_OPTIONS, CutConfig, make_config
from distgnn.datasets.edge_list import EdgeList
from distgnn.partition.baselines import streaming
from distgnn.partition.baselines.programs import kahypar_parts, metis_owners
from distgnn.partition.baselines.vertex_cover import cover_arcs
from distgnn.partition.cmr.method import EFFORTS, cmr, refine_cut
from distgnn.partition.cmr.roles import refine_roles
from distgnn.partition.core.edges import EdgeArrays, Edges, group
from distgnn.partition.core.owners import balanced_owners, even_kinds
from distgnn.partition.core.part_masks import empty_mask, mark_arcs
from distgnn.partition.core.vertex_cut import MOST_ARCS, VertexCut, part_shares
from distgnn.partition.refinement.cut_state import State, arc_limit, rebalance, start_state


class MethodResult(NamedTuple):
    """What a method finds: the part of each edge [M]; perhaps a key [N] to sort owned rows by, or owners [N]."""

    edge_part: np.ndarray
    vertex_order: np.ndarray | None = None
    owner: np.ndarray | None = None


def _metis(edge_list: Edges, shares: np.ndarray, seed: int) -> MethodResult:
    owner = metis_owners(edge_list, shares, seed)
    return MethodResult(cover_arcs(edge_list, owner, shares), owner=owner)


Method = Callable[[Edges, np.ndarray, CutConfig], MethodResult]  # cut(edge_list, shares, config)
METHODS: dict[str, Method] = {
    # cluster, merge, refine: fewest copies at balanced parts
    "cmr": lambda edges, shares, how: MethodResult(*cmr(edges, shares, EFFORTS[how.effort])),
    # DistGNN's rule over a shuffled stream with a limit on arcs
    "libra": lambda edges, shares, how: MethodResult(streaming.libra(edges, shares, how.seed, how.order)),
    # METIS's owners, crossing edges placed by minimum vertex covers; arcs not balanced
    "metis": lambda edges, shares, how: _metis(edges, shares, how.seed),
    # Mt-KaHyPar on the hypergraph of edges (pip install mtkahypar); rows not balanced
    "kahypar": lambda edges, shares, how: MethodResult(kahypar_parts(edges, shares, how.seed)),
    # edges dealt at random
    "random": lambda edges, shares, how: MethodResult(streaming.deal(edges, shares, how.seed)),
}


def cut_edges(edge_list: EdgeList, num_parts: int, method: str | CutConfig = "cmr", **options: Any) -> VertexCut:
    """Cut an edge list into parts.

    Args:
        num_parts: number of parts, at least 1. Parts may stay empty where there are fewer edges than parts.
        method: the name of a method, or a `CutConfig` with everything.
        options: fields of `CutConfig` in `CUT_OPTIONS`: seed, order, refine, capacities, groups, effort.
    Returns: a `VertexCut`; both arcs of a two-way edge are in one part; owners are among the copies, except
        METIS's, and where owned vertices could not be balanced otherwise.
    Raises: InputError.
    """
    config = make_config(method, options, CUT_OPTIONS).check_parts(num_parts)
    shares = part_shares(num_parts, config.capacities)
    effort = EFFORTS[config.effort]

    def cut(edges: Edges, some: np.ndarray) -> MethodResult:
        return METHODS[config.method](edges, some, config)

    def cut_for_owners(edges: Edges, some: np.ndarray) -> MethodResult:
        """One level of a cut in two, its arcs moved for update on owners; who owns what is decided at the end."""
        found = cut(edges, some)
        if len(some) == 1:
            return found
        owner = balanced_owners(edges, found.edge_part, some)
        return found._replace(edge_part=refine_roles(edges, found.edge_part, owner, some, effort=effort)[0])

    # A copy exchanges a row for each of its roles. Where edges are one-way it may have one role only, which the methods
    # do not count: edges and owners are moved once more, with the roles charged alone.
    roles = not edge_list.two_way
    if config.groups > 1:
        # `cut_twice` keeps the parts and the order only: owners of a level are of its own parts, not of all.
        level = cut_for_owners if roles and config.method == "cmr" else cut
        found = MethodResult(*cut_twice(edge_list, shares, config.groups, level))
    else:
        found = cut(edge_list, shares)
    # Whatever a method does not find itself is derived from its edges.
    edge_part, vertex_order, owner = found
    if config.refine and config.method != "cmr":
        # METIS gave owners for its own edges: after moves they are chosen anew.
        edge_part, owner = refine_cut(edge_list, edge_part, shares, effort), None
    if owner is None:
        owner = balanced_owners(edge_list, edge_part, shares)
    # Not after two levels: moving arcs between all parts could undo what the first level kept inside a machine.
    if (config.refine or config.method == "cmr") and roles and config.groups == 1 and num_parts > 1:
        edge_part, owner = refine_roles(edge_list, edge_part, owner, shares, effort=effort)
    if num_parts > 1 and edge_list.edge_kinds is not None:
        edge_part, owner = even_typed(edge_list, edge_part, owner, shares)
    given = None if config.capacities is None else np.array(config.capacities, dtype=np.float64)
    return VertexCut(num_parts, edge_part, owner, order=vertex_order, capacities=given)


def even_typed(
    edge_list: EdgeList, edge_part: np.ndarray, owner: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Part [M] of each edge and owner [N] of a typed graph: arcs of each relation and owned vertices of each kind moved
    from parts that have too many."""
    parts, owner = np.array(edge_part, dtype=np.int16), np.array(owner, dtype=np.int32)
    state = start_state(edge_list, parts, len(shares))
    kinds = np.zeros(0) if edge_list.edge_kinds is None else np.asarray(edge_list.edge_kinds)
    bounds = np.searchsorted(kinds, np.arange(kinds.max(initial=-1) + 2))
    for begin, end in pairwise(bounds.tolist()):
        src, dst = edge_list.src[begin:end], edge_list.dst[begin:end]
        arcs = (2 if edge_list.two_way else 1) * len(src) - (np.count_nonzero(src == dst) if edge_list.two_way else 0)
        edges = EdgeArrays(src, dst, edge_list.num_nodes, edge_list.two_way, arcs)
        weight = np.where(src == dst, 1.0, 2.0) if edge_list.two_way else None
        loads = np.bincount(parts[begin:end], weight, len(shares)).astype(float)
        rebalance(
            edges, State(parts[begin:end], state.table, loads, state.num_copies), arc_limit(edges, shares, MOST_ARCS)
        )
    sources = targets = empty_mask(edge_list.num_nodes, len(shares))
    if not edge_list.two_way:
        targets = np.zeros_like(sources)
    mark_arcs(edge_list.src, edge_list.dst, parts, False, sources, targets)
    even_kinds(sources, targets, owner, shares, edge_list.node_kinds)
    return parts, owner


def cut_twice(
    edge_list: Edges, shares: np.ndarray, groups: int, cut: Callable[..., Any]
) -> tuple[np.ndarray, np.ndarray | None]:
    """A cut between groups of ranks (of one machine), then inside each: fewest copies cross the slow network.

    Args: shares: [P]; groups: a divisor of P; cut: `cut(edge_list, shares)` gives (part of each edge, order, …).
    Returns: part [M] int16 of each edge, and the order [N] of vertices that the first step found (or None).
    Source: ours. Parts that the two steps leave beyond 1.03 times their share give edges away.
    """
    # Group g has the parts g * per_group and following, as consecutive ranks are placed on one machine.
    per_group = len(shares) // groups
    by_group = shares.reshape(groups, per_group)
    first, vertex_order = cut(edge_list, by_group.sum(axis=1))[:2]
    edges, starts = group(first, groups)
    parts = np.empty(len(first), dtype=np.int16)
    for g in range(groups):
        some = edges[starts[g] : starts[g + 1]]
        src, dst = edge_list.src[some], edge_list.dst[some]
        loops = int(np.count_nonzero(src == dst))
        arcs = 2 * len(some) - loops if edge_list.two_way else len(some)
        # Vertices keep their numbers: a group sees isolated ones, which cost nothing here.
        sub = EdgeArrays(src, dst, edge_list.num_nodes, edge_list.two_way, arcs)
        # The shares of a group's parts sum to 1 again: balance is asked for inside the group.
        parts[some] = g * per_group + cut(sub, by_group[g] / by_group[g].sum())[0]
    if len(parts):
        # Each step keeps to its own limit; one after the other they may exceed it.
        state = start_state(edge_list, parts, len(shares))
        rebalance(edge_list, state, arc_limit(edge_list, shares, MOST_ARCS))
        parts = state.edge_part
    return parts, vertex_order
