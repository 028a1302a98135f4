"""The arcs into the rows of a batch: rows of the blocks of the whole part, columns as they were.

A column is a row of a table of all vertices, so that a batch reads held rows where they lie.
"""

from functools import cached_property

import numpy as np

from distgnn.kernels import Tuning
from distgnn.ops.aggregation.aggregator import Arcs, Block
from distgnn.ops.csr_rows import Entries


class RowsOfBlock(Block):
    """Some rows of a block; `positions` are places in the whole block, found where arcs have weights.

    Args: whole: the block; rows: places, ascending; columns: which of its columns count, bool; None: all.
    """

    _whole: Block
    _entries: Entries
    _kept: np.ndarray | None

    def __init__(self, whole: Block, rows: np.ndarray, columns: np.ndarray | None):
        entries = Entries(whole.indptr, rows)
        indptr, indices, kept = entries.indptr, entries.of(whole.indices), None
        if columns is not None:
            kept = columns[indices]
            indptr, indices = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)[indptr], indices[kept]
        mine = {"indptr": indptr, "indices": indices, "first_arc": whole.first_arc, "tuning": Tuning()}
        self.__dict__.update(mine, _whole=whole, _entries=entries, _kept=kept)

    @cached_property
    def positions(self) -> np.ndarray:
        places = self._entries.places() if self._kept is None else self._entries.places()[self._kept]
        return places if self._whole.positions is None else self._whole.positions[places]

    @property
    def weights(self) -> slice:
        return self._whole.weights


def arcs_into(
    arcs: Arcs, owned: np.ndarray, halos: np.ndarray, columns: tuple[np.ndarray, np.ndarray] | None = None
) -> Arcs:
    """The arcs whose target is one of the `owned` rows or target `halos` (places, ascending).

    Args: columns: which owned sources and which source halos count, bool [O] and [S]; None: all.
    """
    of_owned, of_halos = columns or (None, None)
    return Arcs(
        RowsOfBlock(arcs.owned_owned, owned, of_owned),
        RowsOfBlock(arcs.owned_halo, owned, of_halos),
        RowsOfBlock(arcs.halo_owned, halos, of_owned),
        RowsOfBlock(arcs.halo_halo, halos, of_halos),
    )
