"""Features dealt out by owner in one sequential pass over their file, for graphs whose features do not fit in memory.

Shapes: N vertices, D feature width, P parts, O owned rows of a part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distgnn.partition.sorting.bucket_sort import Step

BLOCK_BYTES = 1 << 26


class OwnedRows:
    """Rows [O, D] of a part in the order of ascending ids; indexed by global ids."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, ids: np.ndarray, rows: np.ndarray) -> None:
        self._ids, self._rows = ids, rows
        self.shape, self.dtype = rows.shape, rows.dtype

    def __getitem__(self, ids: np.ndarray) -> np.ndarray:
        # Ids ascend, and only ids of this part are asked for: where an id stands is where its row lies.
        return self._rows[np.searchsorted(self._ids, ids)]


def deal_feats(feats: Any, owner: np.ndarray, num_owned: np.ndarray, array: np.ndarray, step: Step) -> None:
    """Write the rows of each part one after the other into `array` [N, D], in the order of ascending ids.

    Args: feats: [N, D], perhaps mapped, read once from front to back; owner: [N]; num_owned: [P].
    """
    places = np.concatenate([[0], np.cumsum(num_owned)])[:-1]
    block = max(1, BLOCK_BYTES // max(1, feats.shape[1] * feats.dtype.itemsize))
    # One pass from front to back: reading the rows of each part by id would read the file once for each part.
    for begin in range(0, len(owner), block):
        rows = np.asarray(feats[begin : begin + block], dtype=array.dtype)
        parts = owner[begin : begin + block]
        # Stable: inside a part rows stay in the order of ids. Of 16 bits numpy sorts by digits, in a fifth of the time.
        order = np.argsort(parts.astype(np.int16), kind="stable")
        counts = np.bincount(parts, minlength=len(num_owned))
        firsts = np.cumsum(counts) - counts
        for p in np.flatnonzero(counts):
            array[places[p] : places[p] + counts[p]] = rows[order[firsts[p] : firsts[p] + counts[p]]]
        places += counts
        step(min(begin + block, len(owner)), len(owner))
