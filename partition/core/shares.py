"""What each part is meant to hold: equal shares of every load, or shares in proportion to the ranks' speeds.

Shapes: P parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distgnn.errors import InputError

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
