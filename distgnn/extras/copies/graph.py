"""CopyGraph: update on copies, the form of the DistGNN paper. The model sees owned rows and halo copies alike.

Legend: O owned rows, H halo copies, V = O + H local rows, D width.

Every copy applies the same dense layers to the same sums; loss and metrics count owned rows only. It is kept for
comparison: cd-0 is as exact as with update on owners, and 0c exists in this form only.

Source: Md et al., DistGNN, SC'21.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch

from distgnn.comm.plans import plan_to_all_copies
from distgnn.config.extras import part_of
from distgnn.extras.copies.aggregation import CopyAggregator, arcs_of_all_rows
from distgnn.extras.copies.extra import HELD, NOTHING, PAPER, CopyOptions
from distgnn.graph.dist_graph import DistGraph
from distgnn.ops.aggregation.aggregator import Block, RowScale
from distgnn.ops.aggregation.halo import as_array
from distgnn.partition import ExchangePlan, LocalGraph


class CopyGraph(DistGraph):
    """A DistGraph whose rows are [owned | halo copies]; it takes the same arguments, and `copy_updates`.

    Notes:
        Features of halo copies come by one broadcast at the start. Layers that need more than sums and means of
        neighbours (max, attention) are for update on owners.
    """

    @property
    def rule(self) -> str:
        return part_of(self.schedule, CopyOptions).copy_updates or HELD

    @property
    def update(self) -> str:  # type: ignore[override]
        """Who updates a vertex, and which remote sums count."""
        return "copies" if self.rule == HELD else f"copies, {self.rule}"

    @property
    def sends_in_training(self) -> bool:  # type: ignore[override]
        return self.rule != NOTHING

    @property
    def late_rows_stay(self) -> bool:  # type: ignore[override]
        return self.rule != PAPER

    @staticmethod
    def plan_of(local: LocalGraph) -> ExchangePlan:
        return plan_to_all_copies(local.plan, local.halo_counts)

    @staticmethod
    def reduced_halos(part: LocalGraph, direction: int) -> np.ndarray:
        """Forward target halos, backward all halo copies."""
        return np.arange(part.num_owned, part.num_rows) if direction else part.target_halo_rows

    @cached_property
    def forward_arcs(self) -> CopyAggregator:
        return self._copy_aggregator(arcs_of_all_rows(self.local, self.tuning), 0)

    def backward_arcs(self, weighted: bool) -> CopyAggregator:
        if not self._backward_arcs:
            self._backward_arcs[True] = self._copy_aggregator(self.forward_arcs.block.transposed(self.num_rows), 1)
        return self._backward_arcs[True]

    def _copy_aggregator(self, block: Block, direction: int) -> CopyAggregator:
        exchanges = self.exchanges
        return CopyAggregator(
            block,
            exchanges.exact[direction],
            exchanges.delayed[direction],
            self.local.target_halo_rows,
            self.num_owned,
            direction == 1,
            self.rule == NOTHING,
            exchanges.delayed[0] if self.rule == PAPER else None,
        )

    def _filled(self, column: torch.Tensor, value: int | bool) -> torch.Tensor:
        rest = torch.full((self.num_rows - len(column), *column.shape[1:]), value, dtype=column.dtype)
        return torch.cat([column, rest])

    def rows_from_owned(self, rows: torch.Tensor) -> torch.Tensor:
        self.exchange.start_broadcast(as_array(rows))
        return torch.cat([rows, torch.from_numpy(self.exchange.finish_broadcast()).view(rows.dtype)])

    def _scale(self, kind: str, factors: Callable[[np.ndarray], np.ndarray]) -> RowScale:
        """With the degrees in this rank's own arcs, too, where remote rows may not count (0c, the paper's rule)."""
        own = None
        if self.rule != HELD:
            block = self.forward_arcs.block
            counts = np.diff(block.indptr) if kind == "in" else np.bincount(block.indices, minlength=self.num_rows)
            of_own = factors(counts)
            own = RowScale(of_own, of_own, of_own)
        of_all = factors(self.local.in_degrees if kind == "in" else self.local.out_degrees)
        return RowScale(of_all, of_all, of_all, own)
