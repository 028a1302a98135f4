"""What each part is meant to hold: equal shares of every load, or shares in proportion to the ranks' speeds.

Shapes: P parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distgnn.errors import InputError

LEAST = 1e-3  # of the mean: below this a part is not worth its rank
LIMIT = 1.04  # owned vertices of the largest part over the mean, where it costs rows to be below; and its local rows


def part_shares(num_parts: int, capacities: Sequence[float] | np.ndarray | None = None) -> np.ndarray:
    """Shares float64 [P] that sum to 1.

    Args: capacities: relative speeds of the ranks, one for each part, in any unit; None means equal ones.
    Raises: InputError unless there is one positive number for each part.
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
    """Most vertices [P] int64 of so many in all that a part should own; or, of so many local rows, should hold."""
    fair = total * shares
    # At least one more than a fair share: in small graphs 4 % is less than a vertex.
    return np.maximum((LIMIT * fair).astype(np.int64), np.ceil(fair).astype(np.int64) + 1)
