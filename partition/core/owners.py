"""Who owns each vertex: one of the parts that hold a copy, such that every part owns about as many vertices.

An owner saves the rows its own copy would exchange, so a copy that arcs leave from and arrive at is preferred to one
with a single role. With c copies of a vertex the owner exchanges c - 1 rows and every other part one: a vertex of two
copies costs both the same, whoever owns it. These even out owned vertices; vertices of many copies even out rows.

Shapes: N vertices, P parts, W words of a part mask.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.partition.core.edges import Edges
from distgnn.partition.core.part_masks import (
    count_copies,
    count_parts,
    empty_mask,
    has_bit,
    lowest_bit,
    mark_arcs,
    num_bits,
)
from distgnn.partition.core.vertex_cut import fill_up, owned_limit

ROWS_LIMIT = 1.1  # exchanged rows of a part over the mean, up to which it takes vertices of many copies
SWEEPS = 20


def balanced_owners(
    edge_list: Edges, edge_part: np.ndarray, shares: np.ndarray, reverse_part: np.ndarray | None = None
) -> np.ndarray:
    """Owners [N] int32 for an assignment of arcs; shares: [P], see `part_shares`.

    Vertices of most copies choose first, each the part that exchanges least so far; those of two copies the part that
    owns least; isolated ones fill up. Then owners move between copies while that evens out. Where a part is still
    beyond its limit it gives vertices away at the cost of more rows, in the end to a part without a copy.
    """
    num_parts = len(shares)
    sources = targets = empty_mask(edge_list.num_nodes, num_parts)
    if not edge_list.two_way or reverse_part is not None:  # else every copy has both roles: one mask is both
        targets = empty_mask(edge_list.num_nodes, num_parts)
    mark_arcs(edge_list.src, edge_list.dst, edge_part, False, sources, targets)
    if edge_list.two_way and reverse_part is not None:
        mark_arcs(edge_list.dst, edge_list.src, reverse_part, True, sources, targets)
    return owners_among(sources, targets, shares)


def owners_among(sources: np.ndarray, targets: np.ndarray, shares: np.ndarray) -> np.ndarray:
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
    # An isolated vertex exchanges nothing, it is only computed. Owned rows are evened out by parts that are not beyond
    # the limit of local ones.
    rows = count_parts(sources, targets, num_parts)
    room = np.maximum(owned_limit(int(rows.sum()) + isolated, shares) - rows, 0)
    owner[choosing[:isolated]] = fill_up(owned, isolated, shares, room)
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


def even_out(
    choosing: np.ndarray,
    copies: np.ndarray,
    sources: np.ndarray,
    targets: np.ndarray,
    shares: np.ndarray,
    exchanged: np.ndarray,
    owned: np.ndarray,
    owner: np.ndarray,
) -> None:
    """Owners [N] int32 move, in place, until no part owns more than it may; as few rows more as that takes."""
    # What each part may exchange: as much of its share as the worst one does by now, or `ROWS_LIMIT` times the mean.
    most = (max((exchanged / shares).max(), ROWS_LIMIT * exchanged.sum()) * shares).astype(np.int64)
    limit = owned_limit(len(choosing), shares)
    first, many = np.searchsorted(copies[choosing], [2, 3])
    # Moves that cost no rows first, among vertices with two copies; then, from parts beyond the limit, those that do.
    for movable, losing in ((choosing[first:many], False), (choosing[first:], True)):
        # A move changes what the next vertex sees: swept until nothing moves.
        for _ in range(SWEEPS):
            if _shift(movable, sources, targets, losing, limit, most, shares, exchanged, owned, owner) == 0:
                break
    over = np.maximum(owned - limit, 0)
    # What still does not fit is given to parts without a copy: each such vertex costs a row, so fewest copies first.
    if over.any():
        rows = count_parts(sources, targets, len(shares))
        # Each is one more local row and one more to exchange.
        given, room = int(over.sum()), limit - np.minimum(owned, limit)
        below = np.minimum(room, np.maximum(owned_limit(int(rows.sum()) + given, shares) - rows, 0))
        if below.sum() >= given:
            newcomers = fill_up(exchanged // 2, given, shares, below)
        else:  # there is not enough room below the limit of local rows: beyond it these count
            newcomers = fill_up(rows, given, shares, room)
        _hand_over(choosing, over, newcomers, owned, owner)


def even_exchange(sources: np.ndarray, targets: np.ndarray, owner: np.ndarray, shares: np.ndarray) -> None:
    """Owners [N] int32 move to where less is exchanged, in place: no more rows in all, none beyond what it may own."""
    copies = count_copies(sources, targets)
    choosing = np.argsort(copies.astype(np.int16), kind="stable")
    first, many = np.searchsorted(copies[choosing], [2, 3])
    exchanged = exchanged_roles(copies, sources, targets, len(shares))
    _own_roles(copies, sources, targets, owner, exchanged)
    owned, limit = np.bincount(owner, minlength=len(shares)), owned_limit(len(owner), shares)
    no_limit = np.full(len(shares), np.iinfo(np.int64).max // 2)
    for _ in range(SWEEPS):
        # Vertices of two copies first: they make room for vertices of many, where parts own all that they may.
        _shift(choosing[first:many], sources, targets, False, limit, no_limit, shares, exchanged, owned, owner)
        if _relieve(choosing[many:][::-1], sources, targets, limit, shares, exchanged, owned, owner) == 0:
            break


def even_kinds(
    sources: np.ndarray, targets: np.ndarray, owner: np.ndarray, shares: np.ndarray, kinds: np.ndarray | None
) -> None:
    """Owners [N] int32 move, in place, until no part owns more of any kind than it may. Args: kinds: [N], or None."""
    if kinds is None or not len(kinds):
        return
    copies = count_copies(sources, targets)
    exchanged = exchanged_roles(copies, sources, targets, len(shares))
    _own_roles(copies, sources, targets, owner, exchanged)
    choosing = np.argsort(copies.astype(np.int16), kind="stable")
    # The largest first: few of a small kind even out what they leave.
    for kind in np.argsort(-np.bincount(kinds), kind="stable"):
        mine = choosing[kinds[choosing] == kind]
        owned = np.bincount(owner[mine], minlength=len(shares))
        even_out(mine, copies, sources, targets, shares, exchanged, owned, owner)


@inline
def roles_in(sources, targets, v, p):
    return np.int64(has_bit(sources, v, p)) + np.int64(has_bit(targets, v, p))


@inline
def all_roles(sources, targets, v):
    total = 0
    for mask in (sources, targets):
        for w in range(mask.shape[1]):
            total += num_bits(mask[v, w])
    return total


@inline
def least_owning(sources, targets, v, owned, shares, min_roles, home, room, total):
    """The part but `home`, of those where v has at least this many roles, that owns least of its share; -1 if none.

    Args: room: roles that each part may exchange more; total: roles of all copies, 0: whatever there is room for.
    """
    best = -1
    for w in range(sources.shape[1]):
        # Parts with any role, or only those with both.
        word = sources[v, w] | targets[v, w] if min_roles < 2 else sources[v, w] & targets[v, w]
        while word != uint64(0):
            p = (w << 6) + lowest_bit(word)
            word &= word - uint64(1)
            # owned[p] / shares[p] < owned[best] / shares[best], without a division
            if p != home and (best < 0 or owned[p] * shares[best] < owned[best] * shares[p]):
                # As owner it exchanges the roles of all other copies in place of its own.
                more = total - 2 * roles_in(sources, targets, v, p)
                if total == 0 or more <= max(room[p], 0):
                    best = p
    return best


@kernel
def exchanged_roles(copies, sources, targets, num_parts):
    """Roles int64 [P] that each part would exchange if it owned none of the vertices that others have too."""
    exchanged = np.zeros(num_parts, dtype=np.int64)
    for v in range(copies.shape[0]):
        # One copy is its own owner and exchanges nothing.
        if copies[v] < 2:
            continue
        for mask in (sources, targets):
            for w in range(mask.shape[1]):
                word = mask[v, w]
                while word != uint64(0):
                    exchanged[(w << 6) + lowest_bit(word)] += 1
                    word &= word - uint64(1)
    return exchanged


@kernel
def _own_roles(copies, sources, targets, owner, exchanged):
    """exchanged[p] += what p exchanges more because it owns vertices that others have too."""
    for v in range(copies.shape[0]):
        if copies[v] > 1:
            exchanged[owner[v]] += all_roles(sources, targets, v) - 2 * roles_in(sources, targets, v, owner[v])


@kernel
def _shift(movable, sources, targets, losing, limit, most, shares, exchanged, owned, owner):
    """Owners move to a copy on a part that owns less, and may exchange so much more; `losing`: from full parts only."""
    moves, room = 0, most - exchanged
    for i in range(movable.shape[0]):
        v = movable[i]
        p = np.int64(owner[v])
        if losing and owned[p] <= limit[p]:
            continue
        total, roles = all_roles(sources, targets, v), roles_in(sources, targets, v, p)
        q = least_owning(sources, targets, v, owned, shares, 1 if losing else max(roles, 1), p, room, total)
        # Only if q, with one vertex more, still owns less of its share than p does now: the sum of excesses falls, so
        # this ends.
        if q >= 0 and (owned[q] + 1) * shares[p] < owned[p] * shares[q]:
            owner[v] = q
            owned[p] -= 1
            owned[q] += 1
            moves += 1
            there = roles_in(sources, targets, v, q)
            room[p] += total - 2 * roles
            room[q] -= total - 2 * there
    for p in range(len(exchanged)):  # not by a slice: numba compiles its error message for seconds
        exchanged[p] = most[p] - room[p]
    return moves


@kernel
def _relieve(movable, sources, targets, limit, shares, exchanged, owned, owner):
    """Owners move to a copy of as many roles whose part then exchanges less of its share than theirs does now."""
    moves = 0
    for i in range(movable.shape[0]):
        v = movable[i]
        p = np.int64(owner[v])
        total, roles = all_roles(sources, targets, v), roles_in(sources, targets, v, p)
        best = -1
        for w in range(sources.shape[1]):
            word = sources[v, w] | targets[v, w]
            while word != uint64(0):
                q = (w << 6) + lowest_bit(word)
                word &= word - uint64(1)
                there = roles_in(sources, targets, v, q)
                # Fewer roles at its owner are more rows in all.
                if q == p or there < roles or owned[q] >= limit[q]:
                    continue
                if (exchanged[q] + total - 2 * there) * shares[p] >= exchanged[p] * shares[q]:
                    continue
                if best < 0 or exchanged[q] * shares[best] < exchanged[best] * shares[q]:
                    best = q
        if best >= 0:
            exchanged[p] -= total - 2 * roles
            exchanged[best] += total - 2 * roles_in(sources, targets, v, best)
            owned[p] -= 1
            owned[best] += 1
            owner[v] = best
            moves += 1
    return moves


@kernel
def _hand_over(choosing, over, newcomers, owned, owner):
    """The first vertices (fewest copies) of each overfull part go to the parts in `newcomers`."""
    given = 0
    for i in range(choosing.shape[0]):
        v = choosing[i]
        p = owner[v]
        if over[p] > 0:
            over[p] -= 1
            owned[p] -= 1
            owner[v] = newcomers[given]
            owned[newcomers[given]] += 1
            given += 1
