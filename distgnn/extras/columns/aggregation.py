"""Aggregation in groups of ranks that share a part and split its columns (`group.py`).

Legend: n rows of this rank, O owned rows of the part, D width, w columns of this rank, A local arcs of the part.

    rows [n, D] -- all-to-all --> columns [O, w] -- aggregation among ranks of these columns --> [O, w] --> rows [n, D]

A column's sums do not depend on other columns, and are added in the order of the parts: what P parts give, P parts of
t ranks each give. The transposed aggregation is the same on transposed arcs, so that gradients are exact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from distgnn.extras.columns.group import ColumnGroup
from distgnn.ops.aggregation.aggregator import Aggregator, Site, do_work
from distgnn.ops.aggregation.row_scale import Scales, whole_scales


@dataclass(kw_only=True)
class ColumnAggregator(Aggregator):
    """One direction of aggregation; `arcs` and `exchange` are the part's, of this rank's columns.

    Collective: `__call__`, which takes rows [n, D] and gives rows [n, D], and `arc_dots`.
    """

    sums_only: ClassVar[str] = "whole rows at both ends: load the graph without split_columns"

    group: ColumnGroup

    def __call__(
        self,
        rows: np.ndarray,
        edge_weight: np.ndarray | None = None,
        scales: Scales = (None, None),
        site: Site | None = None,
        out: np.ndarray | None = None,
        overlap_work: Sequence[Callable[..., Any]] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `Aggregator`; the source halos' rows have this rank's columns, [S, w]."""
        group, out = self.group, np.empty_like(rows) if out is None else out
        one, two = len(overlap_work) // 3, 2 * len(overlap_work) // 3
        first, second, third = overlap_work[:one], overlap_work[one:two], overlap_work[two:]
        group.start_columns(rows)
        do_work(first, self.exchange)
        columns, made = group.finish_columns(), group.empty_columns(out)
        _, sources = super().__call__(columns, edge_weight, whole_scales(scales), site, made, second)
        group.start_rows(made)
        do_work(third, self.exchange)
        group.finish_rows(out)
        return out, sources

    def arc_dots(
        self, rows: np.ndarray, sources: np.ndarray, grads: np.ndarray, target_grads: np.ndarray, scales: Scales
    ) -> np.ndarray:
        """As `Aggregator`, but of this rank's columns: its share of each arc's number, whose sum over the group is it.

        Collective: yes.
        """
        ends = []
        for own in (rows, grads):
            self.group.start_columns(own)
            ends.append(self.group.finish_columns().copy())
        return super().arc_dots(ends[0], sources, ends[1], target_grads, whole_scales(scales))
