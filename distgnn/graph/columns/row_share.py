"""RowShare: the rows that one rank of a group has of the part that the group shares.

Legend: O owned rows of the part, n those of the rank, P parts, t ranks of a group.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from distgnn.comm.columns import row_bounds
from distgnn.comm.plans import plan_of_column
from distgnn.partition import LocalGraph
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


def whole_plan(share: RowShare) -> LocalGraph:
    """The part with the plan of the rank's columns: what an aggregation of the rank is made of."""
    return replace(share.part, plan=share.plan)
