"""ColumnGraph: groups of ranks share a part. A model sees this rank's rows, an aggregation all rows of its columns.

Legend: O owned rows of the part, n those of this rank.

Layers, norms, masks, loss and features are those of whole rows [n, D]; only aggregation goes by columns
(`distgnn.ops.aggregation.aggregate_columns`). Halo rows are those of P parts, whatever the number of ranks is.
"""

from collections.abc import Callable
from typing import NoReturn, cast

import numpy as np

from distgnn.comm.columns import ColumnGroup
from distgnn.errors import InputError, on_all_ranks
from distgnn.graph.columns.row_share import RowShare, whole_plan
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.model_rows import OwnedRows
from distgnn.graph.training_exchanges import TrainingExchanges
from distgnn.kernels import Tuning
from distgnn.ops.aggregation.aggregate_columns import BY_COLUMNS, ColumnAggregator
from distgnn.ops.aggregation.aggregator import Arcs
from distgnn.ops.aggregation.row_scale import RowScale, SubsetScale
from distgnn.partition import LocalGraph


class ColumnRows(OwnedRows):
    """The rows of one rank of a group."""

    def __init__(self, local: RowShare, exchanges: TrainingExchanges, tuning: Tuning):
        self.group: ColumnGroup = ColumnGroup(exchanges.transport, local.num_columns, local.part.num_owned)
        super().__init__(whole_plan(local), exchanges, tuning)

    @staticmethod
    def part_of(local: LocalGraph) -> LocalGraph:
        return cast(RowShare, local).part

    def _aggregator(self, arcs: Arcs, direction: int) -> ColumnAggregator:
        exchanges = self._exchanges
        return ColumnAggregator(arcs, exchanges.exact[direction], exchanges.delayed[direction], group=self.group)

    def scale(self, kind: str, factors: Callable[[np.ndarray], np.ndarray]) -> RowScale:
        return SubsetScale.of(super().scale(kind, factors), self.group.own_rows)


class ColumnGraph(DistGraph):
    """A DistGraph of a rank's share of a part (`row_share`), on P t ranks; it takes the same arguments.

    Notes:
        What needs whole rows at copies or on arcs (max, attention, messages of one's own) is for one rank a part.
    """

    rows_type = ColumnRows
    local: RowShare
    model_rows: ColumnRows

    @property
    def columns(self) -> int:
        return self.local.num_columns

    @property
    def arcs_counted(self) -> LocalGraph:
        return self.part if self.local.column == 0 else self.local

    @property
    def exchange(self) -> NoReturn:
        raise on_all_ranks(InputError(BY_COLUMNS))

    @property
    def transposed_exchange(self) -> NoReturn:
        raise on_all_ranks(InputError(BY_COLUMNS))

    @property
    def local_arcs(self) -> NoReturn:
        raise on_all_ranks(InputError(BY_COLUMNS))

    def drain(self) -> None:
        super().drain()
        self.model_rows.group.drain()

    def exchange_bytes(self) -> int:
        return super().exchange_bytes() + self.model_rows.group.buffer_bytes()
