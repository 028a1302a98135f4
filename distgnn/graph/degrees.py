"""Degrees in the whole graph, and the factors that norms and means make of them."""

import numpy as np
import torch

from distgnn.comm import Transport
from distgnn.graph.model_rows import ModelRows
from distgnn.ops.aggregation.row_scale import RowScale
from distgnn.ops.sums import min_over_ranks
from distgnn.partition import LocalGraph


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
