"""Who owns each vertex: one of the parts that hold a copy, such that every part owns about as many vertices.

An owner saves the rows its own copy would exchange, so a copy that arcs leave from and arrive at is preferred to one
with a single role.

Shapes: N vertices, P parts, W words of a part mask.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.core.edges import Edges
from distgnn.partition.core.owner_moves import all_roles, even_out, exchanged_roles, least_owning, roles_in
from distgnn.partition.core.part_masks import count_copies, count_parts, empty_mask, lowest_bit, mark_arcs
from distgnn.partition.core.shares import fill_up, owned_limit


def balanced_owners(
    edge_list: Edges,
    edge_part: np.ndarray,
    shares: np.ndarray,
    reverse_part: np.ndarray | None = None,
    update: str = "owners",
) -> np.ndarray:
    """Owners [N] int32 for an assignment of arcs; shares: [P], see `part_shares`.

    The owner of a vertex with three copies or more sends and receives more than the others: these go first, most copies
    first, each to the part that exchanges least so far. One of two copies exchanges as much as the other: so such
    vertices go to the part that owns least, and isolated ones fill up the parts that own least, none beyond 1.04 times
    the mean of local rows; then owners move between copies while that evens out. Only where a part is still beyond
    it is a vertex given away at the cost of more rows, first to a copy whose part then exchanges no more than the
    one that exchanges most, in the end to a part that holds none of its arcs, one that exchanges little.

    With update on "copies", isolated vertices fill up the parts that hold fewest copies: all of them are computed.
    """
    num_parts = len(shares)
    sources = targets = empty_mask(edge_list.num_nodes, num_parts)
    if not edge_list.two_way or reverse_part is not None:  # else every copy has both roles: one mask is both
        targets = empty_mask(edge_list.num_nodes, num_parts)
    mark_arcs(edge_list.src, edge_list.dst, edge_part, False, sources, targets)
    if edge_list.two_way and reverse_part is not None:
        mark_arcs(edge_list.dst, edge_list.src, reverse_part, True, sources, targets)
    return owners_among(sources, targets, shares, update)


def owners_among(sources: np.ndarray, targets: np.ndarray, shares: np.ndarray, update: str = "owners") -> np.ndarray:
    """Owners [N] int32, as `balanced_owners`, from the parts where arcs leave and arrive: masks uint64 [N, W]."""
    num_parts, num_nodes = len(shares), len(sources)
    copies = count_copies(sources, targets)
    owner = np.empty(num_nodes, dtype=np.int32)
    # By number of copies: [isolated | one or two | three and more].
    choosing = np.argsort(copies.astype(np.int16), kind="stable")  # a radix sort, of 16 bits only
    isolated = int(np.count_nonzero(copies == 0))
    owned = np.zeros(num_parts, dtype=np.int64)
    many = int(np.searchsorted(copies[choosing], 3))
    # Each part as if it owned none of its shared vertices; choosing an owner takes its roles off again.
    exchanged = exchanged_roles(copies, sources, targets, num_parts)
    # Most copies first: they weigh most, and what comes later can even out what they leave.
    _choose_exchanging(choosing[many:][::-1], sources, targets, shares, exchanged, owned, owner)
    _choose(choosing[isolated:many], sources, targets, shares, exchanged, owned, owner)
    # An isolated vertex exchanges nothing, it is only computed: with owned rows, or, with update on copies, with all
    # local rows. Owned rows are evened out by parts that are not beyond the limit of local ones.
    rows = count_parts(sources, targets, num_parts)
    room = np.maximum(owned_limit(int(rows.sum()) + isolated, shares) - rows, 0)
    owner[choosing[:isolated]] = fill_up(owned if update == "owners" else rows, isolated, shares, room)
    if num_nodes:
        owned = np.bincount(owner, minlength=num_parts)
        even_out(choosing, copies, sources, targets, shares, exchanged, owned, owner)
    return owner


@kernel
def _choose_exchanging(choosing, sources, targets, shares, exchanged, owned, owner):
    """owner[v] for each v of `choosing`, in order: the part with most roles of v that exchanges least of its share."""
    for i in range(choosing.shape[0]):
        v = choosing[i]
        best, most, total = -1, 0, 0
        for w in range(sources.shape[1]):
            word = sources[v, w] | targets[v, w]
            while word != uint64(0):
                p = (w << 6) + lowest_bit(word)
                word &= word - uint64(1)
                roles = roles_in(sources, targets, v, p)
                total += roles
                if roles > most or (roles == most and exchanged[p] * shares[best] < exchanged[best] * shares[p]):
                    best, most = p, roles
        owner[v] = best
        owned[best] += 1
        # As owner it exchanges the roles of all other copies; its own, counted before, are exchanged no more.
        exchanged[best] += total - 2 * most


@kernel
def _choose(choosing, sources, targets, shares, exchanged, owned, owner):
    """owner[v] for each v of `choosing`, in order: a part with both roles if there is one."""
    for i in range(choosing.shape[0]):
        v = choosing[i]
        best = least_owning(sources, targets, v, owned, shares, 2, -1, exchanged, 0)
        # No part has both roles: any copy will do.
        if best < 0:
            best = least_owning(sources, targets, v, owned, shares, 1, -1, exchanged, 0)
        owner[v] = best
        owned[best] += 1
        total, roles = all_roles(sources, targets, v), roles_in(sources, targets, v, best)
        if total > roles:  # a single copy was never counted
            exchanged[best] += total - 2 * roles
