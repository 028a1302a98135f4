"""Who owns each vertex: one of the parts that hold a copy, such that every part owns about as many vertices.

Shapes: N vertices, P parts, W words of a part mask.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.jit import kernel
from distgnn.partition.bits import count_copies, empty_mask, lowest_bit, mark_arcs


def balanced_owners(edge_list, edge_part: np.ndarray, num_parts: int) -> np.ndarray:
    """Owners [N] int32 among the copies that `edge_part` makes, fewest choices first, least loaded part.

    Vertices with one copy stay where they are, those with few copies choose before those with many, isolated ones
    fill the parts that own least.
    """
    mask = empty_mask(edge_list.num_nodes, num_parts)
    mark_arcs(edge_list.src, edge_list.dst, edge_part, False, mask, mask)
    copies = count_copies(mask, mask)
    owner = np.empty(edge_list.num_nodes, dtype=np.int32)
    choosing = np.argsort(copies, kind="stable")
    isolated = int(np.count_nonzero(copies == 0))
    owned = np.zeros(num_parts, dtype=np.int64)
    _choose(choosing[isolated:], mask, owned, owner)
    owner[choosing[:isolated]] = _fill_up(owned, isolated)
    return owner


def _fill_up(owned: np.ndarray, extra: int) -> np.ndarray:
    """Parts [extra] for `extra` more vertices, always to a part that owns least; in ascending part order."""
    level = _water_level(owned, extra)
    room = np.maximum(level - owned, 0)
    over = int(room.sum()) - extra
    topped = np.flatnonzero(room > 0)[-over:] if over else np.empty(0, dtype=np.int64)
    room[topped] -= 1
    return np.repeat(np.arange(len(owned), dtype=np.int32), room)


def _water_level(owned: np.ndarray, extra: int) -> int:
    """The lowest level at which filling every part up to it takes in at least `extra` vertices."""
    low, high = int(owned.min()), int(owned.max()) + extra
    while low < high:
        middle = (low + high) // 2
        if int(np.maximum(middle - owned, 0).sum()) >= extra:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _choose(choosing, mask, owned, owner):
    """owner[v] = the part in v's set that owns least so far (lowest id on ties), for v in the order of `choosing`."""
    for i in range(choosing.shape[0]):
        v = choosing[i]
        best = -1
        for w in range(mask.shape[1]):
            word = mask[v, w]
            while word != uint64(0):
                p = (w << 6) + lowest_bit(word)
                word &= word - uint64(1)
                if best < 0 or owned[p] < owned[best]:
                    best = p
        owner[v] = best
        owned[best] += 1
