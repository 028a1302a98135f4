"""A cut: which part computes each arc, and which part owns each vertex. The two are independent.

What each part is meant to hold: equal shares of every load, or shares in proportion to the ranks' speeds.

Shapes: M edges of the edge list, N vertices, P parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distgnn.errors import InputError
from distgnn.partition.core.edges import Edges

LEAST = 1e-3  # of the mean: below this a part is not worth its rank
MOST_ARCS = 1.03  # arcs of the largest part over its share
LIMIT = 1.04  # owned vertices of the largest part over the mean, where it costs rows to be below; and its local rows

NO_LIMIT = np.iinfo(np.int64).max


def part_shares(num_parts: int, capacities: Sequence[float] | np.ndarray | None = None) -> np.ndarray:
    """Shares float64 [P] that sum to 1.

    Args: capacities: relative speeds of the ranks, one for each part, in any unit; None means equal ones.
    """
    if capacities is None:
        return np.full(num_parts, 1.0 / num_parts)
    try:
        speeds = np.array(capacities, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"capacities must be numbers, not {capacities!r}") from None
    if speeds.shape != (num_parts,):
        raise InputError(f"capacities must name one speed for each of {num_parts} parts, not {speeds.size}")
    if not (np.isfinite(speeds).all() and (speeds > 0).all()):
        raise InputError(f"capacities must be positive numbers, not {capacities!r}")
    shares = speeds / speeds.sum()
    if shares.min() * num_parts < LEAST:
        raise InputError(f"part {int(shares.argmin())} has less than {LEAST:g} of the mean capacity: leave it out")
    return shares


def fair_counts(total: int, shares: np.ndarray) -> np.ndarray:
    """Whole numbers int64 [P] that sum to `total`, in proportion to the shares to within 1 (lower parts first)."""
    # Rounded running sums, not rounded parts: the errors do not add up.
    bounds = np.floor(np.cumsum(shares) * total + 0.5).astype(np.int64)
    # Rounding must not lose any: the last bound is exact.
    bounds[-1] = total
    return np.diff(bounds, prepend=0)


def owned_limit(total: int, shares: np.ndarray) -> np.ndarray:
    """Most vertices [P] int64 that a part should own of all; or, of all local rows, should hold."""
    fair = total * shares
    # At least one more than a fair share: in small graphs 4 % is less than a vertex.
    return np.maximum((LIMIT * fair).astype(np.int64), np.ceil(fair).astype(np.int64) + 1)


def fill_up(load: np.ndarray, extra: int, shares: np.ndarray, most: np.ndarray | int = NO_LIMIT) -> np.ndarray:
    """Parts [extra] for `extra` more vertices, always to a part with the least load of its share; ascending.

    Args: load: [P]; most: how many each part takes, together no fewer than `extra`.
    """

    def room_below(level: int) -> np.ndarray:
        """Vertices [P] that each part takes in until all have their share of `level`; none gives any away."""
        return np.clip(np.ceil(level * shares - 1e-6).astype(np.int64) - load, 0, most)

    # The lowest level that takes in enough, by bisection: what fits below a level only grows with the level.
    low, high = 0, int(((load + extra + 1) / shares).max()) + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if int(room_below(middle).sum()) >= extra else (middle + 1, high)
    room = room_below(low)
    over = int(room.sum()) - extra  # whole numbers: the level may take in some too many
    topped = np.flatnonzero(room > 0)[-over:] if over else np.empty(0, dtype=np.int64)
    # the parts that were given one too many are the last ones: any fixed rule keeps the result reproducible
    room[topped] -= 1
    return np.repeat(np.arange(len(load), dtype=np.int32), room)


@dataclass(frozen=True, repr=False)
class VertexCut:
    """Any assignment of arcs and owners to parts: vertex cuts, edge cuts and hybrids alike.

    Args:
        num_parts: number of parts P.
        edge_part: [M] int, the part of each edge's forward arc (and its reverse arc, unless `reverse_part` is given).
        owner: [N] int, the part that owns each vertex. It need not hold an arc of the vertex.
        reverse_part: [M] int or None, the part of the reverse arc of each edge of a two-way edge list
            (ignored for self-loops, which are one arc).
        order: [N] int or None, the key by which owned rows are sorted inside their section (ties: global id).
            None sorts by global id.
        capacities: [P] relative speeds of the ranks, or None for equal ones: every balance is against these shares.
    """

    num_parts: int
    edge_part: np.ndarray
    owner: np.ndarray
    reverse_part: np.ndarray | None = None
    order: np.ndarray | None = None
    capacities: np.ndarray | None = None

    def __repr__(self) -> str:
        given = [name for name in ("reverse_part", "order", "capacities") if getattr(self, name) is not None]
        counts = [f"num_parts={self.num_parts}", f"num_edges={len(self.edge_part)}", f"num_nodes={len(self.owner)}"]
        return f"VertexCut({', '.join(counts + given)})"

    @property
    def shares(self) -> np.ndarray:
        """float64 [P] that sum to 1: what part of each load a part is meant to have."""
        return part_shares(self.num_parts, self.capacities)

    def check(self, edge_list: Edges) -> VertexCut:
        """Return self if the cut fits `edge_list`; raise `InputError` saying what does not."""
        if not isinstance(self.num_parts, int | np.integer) or self.num_parts < 1:
            raise InputError(f"a cut needs at least 1 part, not {self.num_parts!r}")
        edges, nodes = len(edge_list.src), edge_list.num_nodes
        _check_parts("edge_part", self.edge_part, edges, self.num_parts)
        _check_parts("owner", self.owner, nodes, self.num_parts)
        if self.reverse_part is not None:
            if not edge_list.two_way:
                raise InputError("reverse_part needs a two-way edge list: this one has a single arc per edge")
            _check_parts("reverse_part", self.reverse_part, edges, self.num_parts)
        part_shares(self.num_parts, self.capacities)
        if self.order is not None:
            _check_ints("order", self.order, nodes)
        return self


def _check_ints(name: str, values: np.ndarray, length: int) -> None:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or values.shape != (length,):
        found = f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"{name} must be an integer array of shape ({length},), not {found}")


def _check_parts(name: str, values: np.ndarray, length: int, num_parts: int) -> None:
    _check_ints(name, values, length)
    # Kernels index by these values without a check.
    if length and (values.min() < 0 or values.max() >= num_parts):
        raise InputError(
            f"{name} must name parts 0 to {num_parts - 1}, but it has values from {values.min()} to {values.max()}"
        )


def part_dtype(num_parts: int) -> type[Any]:
    """The smallest signed integer that holds a part id: edge arrays are the largest ones a cut has."""
    return np.int16 if num_parts <= np.iinfo(np.int16).max else np.int32
