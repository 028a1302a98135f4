"""The arcs into the rows of a batch: rows of the blocks of the whole part, columns as they were.

A column is a row of a table of all vertices, so that a batch reads held rows where they lie.
"""

from dataclasses import dataclass

import numpy as np

from distgnn.kernels import Tuning
from distgnn.ops.aggregation.aggregator import Arcs, Block
from distgnn.ops.csr_rows import rows_of_csr


@dataclass(frozen=True)
class RowsOfBlock(Block):
    """Some rows of a block; `positions` are places in the whole block, of `num_weights` arcs."""

    num_weights: int = 0

    @property
    def weights(self) -> slice:
        return slice(self.first_arc, self.first_arc + self.num_weights)


def arcs_into(
    arcs: Arcs, owned: np.ndarray, halos: np.ndarray, columns: tuple[np.ndarray, np.ndarray] | None = None
) -> Arcs:
    """The arcs whose target is one of the `owned` rows or target `halos` (places, ascending).

    Args: columns: which owned sources and which source halos count, bool [O] and [S]; None: all.
    """
    of_owned, of_halos = columns or (None, None)
    return Arcs(
        _rows_of(arcs.owned_owned, owned, of_owned),
        _rows_of(arcs.owned_halo, owned, of_halos),
        _rows_of(arcs.halo_owned, halos, of_owned),
        _rows_of(arcs.halo_halo, halos, of_halos),
    )


def _rows_of(block: Block, rows: np.ndarray, columns: np.ndarray | None) -> RowsOfBlock:
    indptr, places = rows_of_csr(block.indptr, rows)
    if columns is not None:
        kept = columns[block.indices[places]]
        indptr = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)[indptr]
        places = places[kept]
    positions = places if block.positions is None else block.positions[places]
    return RowsOfBlock(indptr, block.indices[places], block.first_arc, positions, Tuning(), block.num_arcs)
