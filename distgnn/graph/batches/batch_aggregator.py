"""Aggregation into the rows of a batch: fresh rows of the batch, held rows of all other vertices.

    y[i] = sum over j in B of a[i, j] x[j]  +  sum over j not in B of a[i, j] X[j]          i in B; then X[B] <- x

X is written first: then both sums are one sum over the arcs into B, of rows of X. Backward the same on transposed arcs,
with gradients. A layer's weights get the gradient of what was used, y' g, with fresh g. The other form, x' t with a t
of held gradients, is as wrong as those are old, and training was seen to swing (docs/LOG.md).

What is fresh is decided by the batch, not by ranks: owners send the batch's rows to all halo copies, which keep them,
and get the partial sums of the batch's rows.

Legend: O owned rows, B those of the batch, H halo rows, D width.

Source: LMC, Shi et al., ICLR'23 (arXiv 2302.00924), without its convex combination; forward as GAS (Fey et al.,
ICML'21).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distgnn.errors import InputError, on_all_ranks
from distgnn.graph.batches.batch_exchange import BatchExchange
from distgnn.graph.batches.held_rows import HeldRows
from distgnn.ops.aggregation.aggregator import Aggregator, Site
from distgnn.ops.aggregation.row_scale import RowScale, whole_scale


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
        source_scale: RowScale | None = None,
        target_scale: RowScale | None = None,
        site: Site | None = None,
        out: np.ndarray | None = None,
        overlap_work: Sequence[Callable[..., Any]] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `Aggregator`; site: which of the step's exchanges it is."""
        table = self.held.at(0 if site is None else site.number, rows)
        table.owned[self.rows] = rows
        self.exchange.arrive_in(table.halos)
        out = np.empty_like(rows) if out is None else out
        sources, targets = whole_scale(source_scale), self._of_targets(whole_scale(target_scale))
        return super().__call__(table.owned, edge_weight, sources, targets, None, out, overlap_work)

    def _of_targets(self, whole: RowScale | None) -> RowScale | None:
        return whole and RowScale(whole.owned[self.rows], whole.sources, whole.targets[self.halos])

    def arc_dots(self, *args: object) -> np.ndarray:
        raise on_all_ranks(InputError("cluster batches take edge weights that are not trained: choose --batch full"))
