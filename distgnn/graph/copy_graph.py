"""CopyGraph: update on copies, the form of the DistGNN paper. The model sees owned rows and halo copies alike.

Legend: O owned rows, H halo copies, V = O + H local rows, D width.

Every copy applies the same dense layers to the same sums; loss and metrics count owned rows only. It is kept for
comparison: cd-0 is as exact as with update on owners, and 0c exists in this form only.

Source: Md et al., DistGNN, SC'21.
"""

from collections.abc import Callable

import numpy as np
import torch

from distgnn.comm.plans import plan_to_all_copies
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.model_rows import ModelRows
from distgnn.graph.training_exchanges import TrainingExchanges
from distgnn.kernels import Tuning
from distgnn.ops.aggregation.aggregate_copies import CopyAggregator, arcs_of_all_rows, transposed_all_rows
from distgnn.ops.aggregation.aggregator import Block
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.aggregation.row_scale import RowScale
from distgnn.partition import ExchangePlan, LocalGraph


class CopyRows:
    """Update on copies: the model sees all local rows, [owned | halo copies]. Described by `ModelRows`."""

    update = "copies"
    keeps_sparse = False
    overlaps = False

    def __init__(self, local: LocalGraph, exchanges: TrainingExchanges, tuning: Tuning):
        self._local, self._exchanges = local, exchanges
        self.forward: CopyAggregator = self._aggregator(arcs_of_all_rows(local, tuning), 0)
        self._backward: CopyAggregator | None = None

    @staticmethod
    def num_rows(local: LocalGraph) -> int:
        return local.num_rows

    @staticmethod
    def plan(local: LocalGraph) -> ExchangePlan:
        return plan_to_all_copies(local.plan, local.halo_counts)

    @staticmethod
    def part_of(local: LocalGraph) -> LocalGraph:
        return local

    @staticmethod
    def reduced_halos(local: LocalGraph, direction: int) -> np.ndarray:
        """Forward target halos, backward all halo copies."""
        return np.arange(local.num_owned, local.num_rows) if direction else local.target_halo_rows

    def backward(self, weighted: bool) -> CopyAggregator:
        if self._backward is None:
            self._backward = self._aggregator(transposed_all_rows(self.forward.block), 1)
        return self._backward

    def _aggregator(self, block: Block, direction: int) -> CopyAggregator:
        local, exchanges = self._local, self._exchanges
        arrivals = exchanges.delayed[0] if exchanges.schedule.remote_rule == "paper" else None
        return CopyAggregator(
            block,
            exchanges.exact[direction],
            exchanges.delayed[direction],
            local.target_halo_rows,
            local.num_owned,
            direction == 1,
            exchanges.algorithm.no_exchange,
            arrivals,
        )

    def fill(self, column: torch.Tensor, value: int | bool) -> torch.Tensor:
        rest = torch.full((self._local.num_rows - len(column), *column.shape[1:]), value, dtype=column.dtype)
        return torch.cat([column, rest])

    def from_owned(self, rows: torch.Tensor) -> torch.Tensor:
        exchange = self._exchanges.exact[0]
        exchange.start_broadcast(as_array(rows))
        return torch.cat([rows, torch.from_numpy(exchange.finish_broadcast()).view(rows.dtype)])

    def scale(self, kind: str, factors: Callable[[np.ndarray], np.ndarray]) -> RowScale:
        """As in `ModelRows`; with the degrees in this rank's own arcs where remote rows may not count (0c, the paper's
        rule)."""
        local, exchanges = self._local, self._exchanges
        own = None
        if exchanges.algorithm.no_exchange or exchanges.schedule.remote_rule == "paper":
            block = self.forward.block
            counts = np.diff(block.indptr) if kind == "in" else np.bincount(block.indices, minlength=local.num_rows)
            of_own = factors(counts)
            own = RowScale(of_own, of_own, of_own)
        of_all = factors(local.in_degrees if kind == "in" else local.out_degrees)
        return RowScale(of_all, of_all, of_all, own)


class CopyGraph(DistGraph):
    """A DistGraph whose rows are [owned | halo copies]; it takes the same arguments.

    Notes:
        Features of halo copies come by one broadcast at the start. Layers that need more than sums and means of
        neighbours (max, attention) are for update on owners.
    """

    rows_type: type[ModelRows] = CopyRows
