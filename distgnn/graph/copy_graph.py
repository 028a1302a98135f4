"""CopyGraph: update on copies, the form of the DistGNN paper. The model sees owned rows and halo copies alike.

Legend: O owned rows, H halo copies, V = O + H local rows, D width.

Every copy applies the same dense layers to the same sums; loss and metrics count owned rows only. It is kept for
comparison: cd-0 is as exact as with update on owners, and 0c exists in this form only.

Source: Md et al., DistGNN, SC'21.
"""

import numpy as np
import torch

from distgnn.comm.copies import plan_to_all_copies
from distgnn.graph.dist_graph import DistGraph
from distgnn.ops.aggregation.aggregate_copies import CopyAggregator, arcs_of_all_rows, transposed_all_rows
from distgnn.ops.aggregation.aggregator import RowScale
from distgnn.ops.aggregation.halo import as_array
from distgnn.partition import ExchangePlan


class CopyGraph(DistGraph):
    """A DistGraph whose rows are [owned | halo copies]; it takes the same arguments.

    Notes:
        Features of halo copies come by one broadcast at the start. Layers that need more than sums and means of
        neighbours (max, attention) are for update on owners.
    """

    update = "copies"

    def _count_rows(self) -> int:
        return self.local.num_rows

    def _make_plan(self) -> ExchangePlan:
        return plan_to_all_copies(self.local.plan, self.local.halo_counts)

    def _halos_that_reduce(self, direction: int) -> np.ndarray:
        """Forward target halos, backward all halo copies."""
        return np.arange(self.num_owned, self.num_rows) if direction else self.local.target_halo_rows

    def _make_forward_arcs(self) -> CopyAggregator:
        return self._aggregator(arcs_of_all_rows(self.local), backward=False)

    def backward_arcs(self, weighted: bool) -> CopyAggregator:
        """The aggregator over transposed arcs, made when first needed."""
        if True not in self._backward_arcs:
            self._backward_arcs[True] = self._aggregator(transposed_all_rows(self.forward_arcs.block), backward=True)
        return self._backward_arcs[True]

    def _aggregator(self, block, backward: bool) -> CopyAggregator:
        exchange = self.transposed_exchange if backward else self.exchange
        targets, no_exchange = self.local.target_halo_rows, self.algorithm.no_exchange
        arrivals = self._delayed[0] if self.schedule.remote_rule == "paper" else None
        delayed = self._delayed[backward]
        return CopyAggregator(block, exchange, delayed, targets, self.num_owned, backward, no_exchange, arrivals)

    def _all_rows(self, column: torch.Tensor | None, fill) -> torch.Tensor | None:
        if column is None:
            return None
        rest = torch.full((self.num_rows - len(column), *column.shape[1:]), fill, dtype=column.dtype)
        return torch.cat([column, rest])

    def rows_from_owned(self, rows: torch.Tensor | None) -> torch.Tensor | None:
        """Owned rows and behind them those of halo copies, by one broadcast. Collective: yes."""
        if rows is None:
            return None
        self.exchange.start_broadcast(as_array(rows))
        return torch.cat([rows, torch.from_numpy(self.exchange.finish_broadcast()).view(rows.dtype)])

    def degree_scale(self, kind: str, power: float, offset: int = 0) -> RowScale:
        """As in DistGraph, over local rows; with the degrees in this rank's own arcs where remote rows may not count
        (0c, the paper's rule)."""
        key = (kind, power, offset)
        if key not in self._degree_scales:
            degrees = self.local.in_degrees if kind == "in" else self.local.out_degrees
            block = self.forward_arcs.block
            own = np.diff(block.indptr) if kind == "in" else np.bincount(block.indices, minlength=self.num_rows)
            alone = self.algorithm.no_exchange or self.schedule.remote_rule == "paper"
            local = self._scale_of(own, power, offset) if alone else None
            self._degree_scales[key] = self._scale_of(degrees, power, offset, local)
        return self._degree_scales[key]

    def _scale_of(self, degrees: np.ndarray, power: float, offset: int, local: RowScale | None = None) -> RowScale:
        factors = self._factors(degrees, power, offset)
        return RowScale(factors, factors, factors, local)
