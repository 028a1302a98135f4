"""Which rows a model sees, the aggregation over them, and their degrees. `OwnedRows`: one row per owned vertex.

Legend: O owned rows, V the model's rows, S / T source and target halos.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch

from distgnn.comm import Transport
from distgnn.graph.training_exchanges import TrainingExchanges
from distgnn.kernels import Tuning
from distgnn.ops.aggregation.aggregate_copies import CopyAggregator
from distgnn.ops.aggregation.aggregator import Aggregator, Arcs
from distgnn.ops.aggregation.row_scale import RowScale
from distgnn.ops.sums import min_over_ranks
from distgnn.partition import ExchangePlan, LocalGraph


class ModelRows(Protocol):
    """What differs between update on owners and update on copies. A DistGraph has one such object.

    Attributes:
        update: "owners" or "copies".
        keeps_sparse: may features stay sparse?
        overlaps: does an aggregation do other work while it waits for messages?
    """

    update: str
    keeps_sparse: bool
    overlaps: bool

    def __init__(self, local: LocalGraph, exchanges: TrainingExchanges, tuning: Tuning) -> None: ...

    @staticmethod
    def num_rows(local: LocalGraph) -> int:
        """V."""

    @staticmethod
    def plan(local: LocalGraph) -> ExchangePlan:
        """Who sends which rows to whom in a forward aggregation."""

    @staticmethod
    def part_of(local: LocalGraph) -> LocalGraph:
        """The part whose arcs an aggregation goes over."""

    @staticmethod
    def reduced_halos(local: LocalGraph, direction: int) -> np.ndarray:
        """Local rows of the halos of that part whose partial sums a reduce sends, forward (0) or backward (1)."""

    @property
    def forward(self) -> Aggregator | CopyAggregator:
        """The aggregator over the arcs of all ranks."""

    def backward(self, weighted: bool) -> Aggregator | CopyAggregator:
        """The aggregator over transposed arcs, made when first needed; with edge weights it keeps the arc map."""

    def fill(self, column: torch.Tensor, value: int | bool) -> torch.Tensor:
        """A column over owned rows as one over the model's rows; `value` is for rows that are not owned."""

    def from_owned(self, rows: torch.Tensor) -> torch.Tensor:
        """The model's rows from owned ones; rows that are not owned get theirs from the owner. Collective: yes."""

    def scale(self, kind: str, factors: Callable[[np.ndarray], np.ndarray]) -> RowScale:
        """`factors` of the "in" or "out" degrees, wherever an aggregation meets a vertex."""


class OwnedRows:
    """Update on owners: the model sees each vertex once, on its owner. Described by `ModelRows`."""

    update = "owners"
    keeps_sparse = True
    overlaps = True

    def __init__(self, local: LocalGraph, exchanges: TrainingExchanges, tuning: Tuning):
        self._local, self._exchanges = local, exchanges
        self.forward: Aggregator = self._aggregator(Arcs.of(local, tuning), 0)
        self._backward: dict[bool, Aggregator] = {}

    @staticmethod
    def num_rows(local: LocalGraph) -> int:
        return local.num_owned

    @staticmethod
    def plan(local: LocalGraph) -> ExchangePlan:
        return local.plan

    @staticmethod
    def part_of(local: LocalGraph) -> LocalGraph:
        return local

    @staticmethod
    def reduced_halos(local: LocalGraph, direction: int) -> np.ndarray:
        return local.source_halo_rows if direction else local.target_halo_rows

    def backward(self, weighted: bool) -> Aggregator:
        if weighted not in self._backward:
            local = self._local
            arcs = self.forward.arcs.transposed(local.num_owned, local.num_source_halos, local.symmetric, weighted)
            self._backward[weighted] = self._aggregator(arcs, 1)
        return self._backward[weighted]

    def _aggregator(self, arcs: Arcs, direction: int) -> Aggregator:
        return Aggregator(arcs, self._exchanges.exact[direction], self._exchanges.delayed[direction])

    def fill(self, column: torch.Tensor, value: int | bool) -> torch.Tensor:
        return column

    def from_owned(self, rows: torch.Tensor) -> torch.Tensor:
        return rows

    def scale(self, kind: str, factors: Callable[[np.ndarray], np.ndarray]) -> RowScale:
        local = self._local
        of_all = factors(local.in_degrees if kind == "in" else local.out_degrees)
        return RowScale(of_all[: local.num_owned], of_all[local.source_halo_rows], of_all[local.target_halo_rows])


class Degrees:
    """Degrees of one rank's vertices, counted over all ranks' arcs; factors of them are kept.

    Args: model_rows: knows where an aggregation meets a vertex; dtype: of the rows that factors scale.
    """

    def __init__(self, local: LocalGraph, model_rows: ModelRows, dtype: torch.dtype):
        self._local, self._model_rows = local, model_rows
        self._dtype = np.float64 if dtype == torch.float64 else np.float32
        self._scales: dict[tuple[str, float, int], RowScale] = {}
        self._zero_in_degree: bool | None = None

    def scale(self, kind: str, power: float, offset: int) -> RowScale:
        """Factors max(degree + offset, 1) ** power of every local vertex; `kind` is "in" or "out"."""

        def factors(degrees: np.ndarray) -> np.ndarray:
            return (np.maximum(degrees.astype(np.float64) + offset, 1) ** power).astype(self._dtype)

        key = (kind, power, offset)
        if key not in self._scales:
            self._scales[key] = self._model_rows.scale(kind, factors)
        return self._scales[key]

    def any_zero_in_degree(self, transport: Transport) -> bool:
        """Is there a vertex without in-arcs anywhere? Collective: the first time."""
        if self._zero_in_degree is None:
            here = (self._local.in_degrees[: self._local.num_owned] == 0).any()
            self._zero_in_degree = min_over_ranks(transport.comm, int(not here)) == 0
        return self._zero_in_degree
