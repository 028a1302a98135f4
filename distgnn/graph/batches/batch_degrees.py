"""Degrees in the graph that a batch induces, for batches without history (Cluster-GCN).

Legend: O owned rows, S / T source and target halos, B rows of the batch.
"""

from typing import Any

import numpy as np

from distgnn.graph.batches.batch_exchange import BatchExchange
from distgnn.ops.aggregation.aggregator import Arcs
from distgnn.ops.aggregation.row_scale import RowScale

COLUMNS = {"in": 0, "out": 1}


class BatchDegrees:
    """In- and out-degrees over the arcs whose ends are both in the batch, of all ranks.

    Collective: the constructor.

    Args:
        arcs, exchange: forward and backward: blocks of the batch alone, and the exchange that goes with them.
        rows: places of the batch's owned rows; num_owned, num_halos: O, and (S, T).
    """

    def __init__(
        self,
        arcs: tuple[Arcs, Arcs],
        exchange: tuple[BatchExchange, BatchExchange],
        rows: np.ndarray,
        num_owned: int,
        num_halos: tuple[int, int],
    ):
        self.owned: np.ndarray = np.zeros((num_owned, 2))
        for column in range(2):
            self.owned[rows, column] = _degrees(arcs[column], exchange[column])
        self.sources: np.ndarray = _to_halos(exchange[0], self.owned, num_halos[0])
        self.targets: np.ndarray = _to_halos(exchange[1], self.owned, num_halos[1])
        self._scales: dict[tuple[str, float, int], RowScale] = {}

    def scale(self, kind: str, power: float, offset: int, dtype: type[Any]) -> RowScale:
        """Factors max(degree + offset, 1) ** power of every vertex; of those outside the batch they mean nothing."""
        key = (kind, power, offset)
        if key not in self._scales:
            column = COLUMNS[kind]
            every: Any = (degrees[:, column] for degrees in (self.owned, self.sources, self.targets))
            self._scales[key] = RowScale(*((np.maximum(one + offset, 1) ** power).astype(dtype) for one in every))
        return self._scales[key]


def _degrees(arcs: Arcs, exchange: BatchExchange) -> np.ndarray:
    """Arcs into each of the batch's owned rows over all ranks, float64 [B]."""
    own, there = (
        (np.diff(near.indptr) + np.diff(far.indptr)).astype(np.float64)[:, None]
        for near, far in ((arcs.owned_owned, arcs.owned_halo), (arcs.halo_owned, arcs.halo_halo))
    )
    sent = exchange.target_rows(there)
    sent[:] = there
    exchange.start_reduce(sent)
    exchange.finish_reduce(own)
    return own[:, 0]


def _to_halos(exchange: BatchExchange, owned: np.ndarray, num_halos: int) -> np.ndarray:
    halos = np.zeros((num_halos, owned.shape[1]))
    exchange.arrive_in(halos)
    exchange.start_broadcast(owned)
    return exchange.finish_broadcast()
