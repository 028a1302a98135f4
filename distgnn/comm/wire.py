"""Width on the wire: rows become bytes when they are packed, and rows again when they are taken.

The formats are in `distgnn/config/schedule.py`. Random rounding is keyed by (seed, epoch, site, direction, verb, row
id, column): a run repeated is bit-identical. Ids never travel.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from distgnn import kernels
from distgnn.config import row_bytes


@dataclass(frozen=True)
class Wire:
    """How rows of one exchange travel.

    Args:
        name: of a format.
        owned_ids: ids of owned rows, int64 [O], for rounding broadcasts.
        halo_ids: ids of the halo rows that a reduce sends, int64; different from owned ones and on every rank, so that
            rounding errors of partial sums that are added are independent.
        direction: 0 forward, 1 backward.
    """

    name: str
    owned_ids: np.ndarray
    halo_ids: np.ndarray
    direction: int

    @property
    def whole(self) -> bool:
        """Do rows travel as they are?"""
        return self.name == "float32"

    def ids(self, verb: str) -> np.ndarray:
        return self.owned_ids if verb == "broadcast" else self.halo_ids

    def row_bytes(self, like: np.ndarray) -> int:
        """Bytes of one row with the width and dtype of `like` [*, D]."""
        return row_bytes(like.shape[1], self.name, like.itemsize)

    def rows(self, buffer: np.ndarray, like: np.ndarray) -> np.ndarray:
        """Bytes uint8 [M * row_bytes] as what `encode` writes and `decode` reads: one row each."""
        if self.whole:
            return buffer.view(like.dtype).reshape(-1, like.shape[1])
        return buffer.reshape(-1, self.row_bytes(like))

    def encode(
        self, verb: str, rows: np.ndarray, chosen: np.ndarray, ids: np.ndarray, out: np.ndarray, key: tuple[Any, ...]
    ) -> None:
        """out = the chosen rows, packed; `ids` belong to `rows`, `key` is (seed, epoch, site)."""
        if self.whole:
            kernels.pack_rows(rows, chosen, out=out)
            return
        seed, epoch, site = key
        # A number per site, direction and verb: messages of one epoch never share random draws
        channel = 4 * site + 2 * self.direction + (verb == "reduce")
        kernels.encode_rows(rows, chosen, self.name, out, row_ids=ids, seed=seed, step=epoch, site=channel)

    def decode(self, packed: np.ndarray, out: np.ndarray) -> None:
        if self.whole:
            np.copyto(out, packed)
        else:
            kernels.decode_rows(packed, self.name, out)
