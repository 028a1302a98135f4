"""Width on the wire: rows become bytes when they are packed, and rows again when they are taken.

| wire | bytes of a row of D columns | |
|---|---|---|
| float32 | 4 D (8 D for float64 rows) | the row itself |
| bfloat16 | 2 D | rounded to nearest |
| int8 | D + 4 | scale per row, rounded at random without bias |
| int4 | D / 2 + 4 | the same |

Random rounding is keyed by (seed, epoch, site and leg, row id, column): a run repeated is bit-identical. Ids never
travel.
"""

from dataclasses import dataclass

import numpy as np

from distgnn import kernels


@dataclass(frozen=True)
class Wire:
    """How rows of one exchange travel.

    Args:
        name: "float32", "bfloat16", "int8" or "int4".
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

    def room(self, num_rows: int, like: np.ndarray) -> np.ndarray:
        """A buffer for messages of `num_rows` rows with the width and dtype of `like` [*, D]."""
        if self.whole:
            return np.empty((num_rows, like.shape[1]), like.dtype)
        return np.empty((num_rows, kernels.row_bytes(like.shape[1], self.name)), np.uint8)

    def encode(self, verb: str, rows: np.ndarray, chosen: np.ndarray, out: np.ndarray, key: tuple) -> None:
        """out = the chosen rows, packed; `key` is (seed, epoch, site)."""
        if self.whole:
            kernels.pack_rows(rows, chosen, out=out)
            return
        seed, epoch, site = key
        ids = self.owned_ids if verb == "broadcast" else self.halo_ids
        leg = 4 * site + 2 * self.direction + (verb == "reduce")
        kernels.encode_rows(rows, chosen, self.name, out, row_ids=ids, seed=seed, step=epoch, site=leg)

    def decode(self, packed: np.ndarray, out: np.ndarray) -> None:
        """out = the rows that `packed` stands for."""
        if self.whole:
            np.copyto(out, packed)
        else:
            kernels.decode_rows(packed, self.name, out)
