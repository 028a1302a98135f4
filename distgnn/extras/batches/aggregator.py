"""Aggregation into the rows of a batch: fresh rows of the batch, held rows of all other vertices.

    y[i] = sum over j in B of a[i, j] x[j]  +  sum over j not in B of a[i, j] X[j]          i in B; then X[B] <- x

X is written first: then both sums are one sum over the arcs into B, of rows of X. Backward the same on transposed arcs,
with gradients. A layer's weights get the gradient of what was used, y' g, with fresh g. The other form, x' t with a t
of held gradients, is as wrong as those are old, and training was seen to swing (docs/LOG.md).

What is fresh is decided by the batch, not by ranks: owners send the batch's rows to all halo copies, which keep them,
and get the partial sums of the batch's rows.

The arcs into a batch are rows of the blocks of the whole part, columns as they were: a column is a row of a table of
all vertices, so that a batch reads held rows where they lie.

Legend: O owned rows, B the batch's, H halo rows of one direction (source halos forward, target halos backward),
D width.

Source: LMC, Shi et al., ICLR'23 (arXiv 2302.00924), without its convex combination; forward as GAS (Fey et al.,
ICML'21).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from distgnn.errors import InputError, on_all_ranks
from distgnn.extras.batches.exchange import BatchExchange
from distgnn.kernels import Tuning
from distgnn.ops.aggregation.aggregator import Aggregator, Arcs, Block, RowScale, Scales, Site, whole_scales
from distgnn.ops.csr_rows import Entries


class Table(NamedTuple):
    """owned [O, D], halos [H, D]."""

    owned: np.ndarray
    halos: np.ndarray


class HeldRows:
    """One table for each exchange of a step, in one direction; zeros until a batch has written to it.

    Args: num_owned, num_halos: O and H.
    """

    def __init__(self, num_owned: int, num_halos: int):
        self._sizes = num_owned, num_halos
        self._tables: dict[int, Table] = {}

    def at(self, site: int, like: np.ndarray) -> Table:
        """The table of exchange `site`, of rows like `like` [*, D]."""
        kind = like.shape[1], like.dtype
        table = self._tables.get(site)
        if table is None or (table.owned.shape[1], table.owned.dtype) != kind:
            table = self._tables[site] = Table(*(np.zeros((rows, kind[0]), kind[1]) for rows in self._sizes))
        return table

    def state_dict(self) -> dict[str, np.ndarray]:
        named = ((site, part, array) for site, table in self._tables.items() for part, array in table._asdict().items())
        return {f"{site}.{part}": array for site, part, array in named}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        self._tables = {}
        for site in sorted({int(name.partition(".")[0]) for name in state}):
            table = Table(*(np.array(state[f"{site}.{part}"]) for part in Table._fields))
            if tuple(map(len, table)) != self._sizes or table.owned.shape[1:] != table.halos.shape[1:]:
                raise ValueError(f"exchange {site} has {len(table.owned)} and {len(table.halos)} rows")
            self._tables[site] = table


class RowsOfBlock(Block):
    """Some rows of a block; `positions` are places in the whole block, found where arcs have weights.

    Args: whole: the block; rows: places, ascending.
    """

    _whole: Block
    _entries: Entries

    def __init__(self, whole: Block, rows: np.ndarray):
        entries = Entries(whole.indptr, rows)
        mine = {"indptr": entries.indptr, "indices": entries.of(whole.indices), "first_arc": whole.first_arc}
        self.__dict__.update(mine, tuning=Tuning(), _whole=whole, _entries=entries)

    @cached_property
    def positions(self) -> np.ndarray:
        places = self._entries.places()
        return places if self._whole.positions is None else self._whole.positions[places]

    @property
    def weights(self) -> slice:
        return self._whole.weights


def arcs_into(arcs: Arcs, owned: np.ndarray, halos: np.ndarray) -> Arcs:
    """The arcs whose target is one of the `owned` rows or target `halos` (places, ascending)."""
    return Arcs(
        RowsOfBlock(arcs.owned_owned, owned),
        RowsOfBlock(arcs.owned_halo, owned),
        RowsOfBlock(arcs.halo_owned, halos),
        RowsOfBlock(arcs.halo_halo, halos),
    )


@dataclass(kw_only=True)
class BatchAggregator(Aggregator):
    """One direction of aggregation into a batch.

    Collective: `__call__`, which takes rows [B, D] and gives rows [B, D].

    Args:
        exchange: set to the batch.
        held: rows of this direction. rows: places of the batch's owned rows. halos: places of its halo targets.
    """

    exchange: BatchExchange
    held: HeldRows
    rows: np.ndarray
    halos: np.ndarray

    def __call__(
        self,
        rows: np.ndarray,
        edge_weight: np.ndarray | None = None,
        scales: Scales = (None, None),
        site: Site | None = None,
        out: np.ndarray | None = None,
        overlap_work: Sequence[Callable[..., Any]] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `Aggregator`; site: which of the step's exchanges it is."""
        table = self.held.at(0 if site is None else site.number, rows)
        table.owned[self.rows] = rows
        self.exchange.arrive_in(table.halos)
        out = np.empty_like(rows) if out is None else out
        sources, targets = whole_scales(scales)
        if targets is not None:
            targets = RowScale(targets.owned[self.rows], targets.sources, targets.targets[self.halos])
        return super().__call__(table.owned, edge_weight, (sources, targets), None, out, overlap_work)

    def arc_dots(self, *args: object) -> np.ndarray:
        raise on_all_ranks(
            InputError("cluster batches take edge weights that are not trained: leave --cluster-batches out")
        )
