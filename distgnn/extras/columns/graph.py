"""ColumnGraph: groups of ranks share a part. A model sees this rank's rows, an aggregation all rows of its columns.

Legend: O owned rows of the part, n this rank's, P parts, t ranks of a group.

Layers, norms, masks, loss and features are as of whole rows [n, D]; only aggregation goes by columns
(`aggregation.py`). Halo rows are as of P parts, whatever the number of ranks is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from mpi4py import MPI

from distgnn.comm.plans import indptr_of
from distgnn.errors import InputError, on_all_ranks
from distgnn.extras.columns.aggregation import ColumnAggregator
from distgnn.extras.columns.group import ColumnGroup, row_bounds
from distgnn.graph.dist_graph import DistGraph
from distgnn.ops.aggregation.aggregator import Arcs
from distgnn.ops.aggregation.row_scale import RowScale
from distgnn.partition import ExchangePlan, LocalGraph
from distgnn.partition.core.local_graph import BLOCKS, Csr
from distgnn.partition.core.part_arrays import OF_ARCS, OF_VERTICES


@dataclass(repr=False)
class RowShare(LocalGraph):
    """A part of n owned rows without arcs and halos; `part` has those that the rank aggregates over.

    `plan` is the part's, among the ranks of the same columns.
    """

    part: LocalGraph = field(kw_only=True)
    num_columns: int = field(kw_only=True)

    @property
    def column(self) -> int:
        """Which rank of its group this is."""
        return self.part_id % self.num_columns


def row_share(part: LocalGraph, num_columns: int, column: int) -> RowShare:
    """The share of one rank of a group of `num_columns`.

    Notes: features, labels and masks are views of the part's; sparse features are copied.
    """
    bounds = row_bounds(part.num_owned, num_columns)
    rows = slice(int(bounds[column]), int(bounds[column + 1]))
    num_rows = rows.stop - rows.start
    of_part = {name: getattr(part, name) for name in part.__dataclass_fields__}
    nothing = np.empty(0, np.int32)
    empty = {name: Csr(np.zeros(1 + num_rows * name.startswith("owned"), np.int64), nothing) for name in BLOCKS}
    own: dict[str, Any] = {
        "part_id": part.part_id * num_columns + column,
        "num_parts": part.num_parts * num_columns,
        "num_owned": num_rows,
        "num_interior": num_rows,
        "global_ids": part.global_ids[rows],
        "in_degrees": part.in_degrees[rows],
        "out_degrees": part.out_degrees[rows],
        "halo_counts": np.zeros((part.num_parts * num_columns, 3), np.int64),
        "blocks": empty,
        "arc_ids": np.empty(0, np.int64),
        "plan": plan_of_column(part.plan, num_columns, column),
        "edge_splits": part.edge_splits_from(part.global_ids[rows]),
    }
    own |= {name: None if of_part[name] is None else of_part[name][rows] for name in OF_VERTICES}
    return RowShare(**of_part | own | dict.fromkeys(OF_ARCS), part=part, num_columns=num_columns)


def plan_of_column(plan: ExchangePlan, num_columns: int, column: int) -> ExchangePlan:
    """A plan of P parts as one of P t ranks, of which only those with the same columns exchange rows."""

    def spread(indptr: np.ndarray) -> np.ndarray:
        counts = np.zeros(plan.num_parts * num_columns, np.int64)
        counts[column::num_columns] = np.diff(indptr)
        return indptr_of(counts)

    names = ("broadcast_indptr", "source_indptr", "reduce_indptr", "target_indptr")
    changed: dict[str, Any] = {name: spread(getattr(plan, name)) for name in names}
    changed |= {"num_parts": plan.num_parts * num_columns, "part_id": plan.part_id * num_columns + column}
    return replace(plan, **changed)


class ColumnGraph(DistGraph):
    """A DistGraph of a rank's share of a part, on P t ranks; it takes the same arguments.

    Notes:
        What needs whole rows at copies or on arcs (max, attention, messages of one's own) is for one rank a part.
    """

    local: RowShare

    def __init__(self, local: LocalGraph, comm: MPI.Comm, *, split_columns: int, **settings: Any):
        share = row_share(local, split_columns, comm.rank % split_columns)
        super().__init__(share, comm, split_columns=split_columns, **settings)

    @cached_property
    def _group(self) -> ColumnGroup:
        """The ranks that share the part."""
        return ColumnGroup(self.transport, self.local.num_columns, self.part.num_owned)

    @property
    def part(self) -> LocalGraph:
        return self.local.part

    def _aggregator(self, arcs: Arcs, direction: int) -> ColumnAggregator:
        exchanges = self.exchanges
        return ColumnAggregator(arcs, exchanges.exact[direction], exchanges.delayed[direction], group=self._group)

    def _scale(self, kind: str, factors: Callable[[np.ndarray], np.ndarray]) -> RowScale:
        return super()._scale(kind, factors).of_rows(self._group.own_rows)

    @property
    def arcs_counted(self) -> LocalGraph:
        return self.part if self.local.column == 0 else self.local

    def _refuse(self) -> NoReturn:
        raise on_all_ranks(InputError(f"rows at copies and on arcs need {ColumnAggregator.sums_only}"))

    exchange = transposed_exchange = local_arcs = property(_refuse)

    def drain(self) -> None:
        super().drain()
        self._group.exchange.drain()

    def exchange_bytes(self) -> int:
        return super().exchange_bytes() + self._group.exchange.messages.num_bytes
