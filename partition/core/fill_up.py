"""Loads of unequal parts, filled up like water: to whom the next vertices go so that nobody has more of its share."""

import numpy as np

NO_LIMIT = np.iinfo(np.int64).max


def fill_up(load: np.ndarray, extra: int, shares: np.ndarray, most: np.ndarray | int = NO_LIMIT) -> np.ndarray:
    """Parts [extra] for `extra` more vertices, always to a part with the least load of its share; ascending.

    Args: load: [P]; most: how many each part takes, together no fewer than `extra`.
    """
    room = _room(load, shares, _water_level(load, extra, shares, most), most)
    over = int(room.sum()) - extra  # whole numbers: the level may take in some too many
    topped = np.flatnonzero(room > 0)[-over:] if over else np.empty(0, dtype=np.int64)
    # the parts that were given one too many are the last ones: any fixed rule keeps the result reproducible
    room[topped] -= 1
    return np.repeat(np.arange(len(load), dtype=np.int32), room)


def _room(load: np.ndarray, shares: np.ndarray, level: int, most: np.ndarray | int) -> np.ndarray:
    """Vertices [P] that each part takes in until all have their share of `level`; none gives any away."""
    return np.clip(np.ceil(level * shares - 1e-6).astype(np.int64) - load, 0, most)


def _water_level(load: np.ndarray, extra: int, shares: np.ndarray, most: np.ndarray | int) -> int:
    """The lowest number of vertices whose shares, filled up everywhere, take in at least `extra`."""
    # By bisection: what fits below a level only grows with the level.
    low, high = 0, int(((load + extra + 1) / shares).max()) + 1
    while low < high:
        middle = (low + high) // 2
        if int(_room(load, shares, middle, most).sum()) >= extra:
            high = middle
        else:
            low = middle + 1
    return low
