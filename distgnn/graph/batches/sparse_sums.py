"""The aggregation of sparse features, kept sparse: the first layer of a batch with history is then exact.

In a step on the whole graph, sparse features are multiplied first. Of a batch that would read held products of earlier
weights. Sums of rows of neighbours have a few times the non-zeros of the features; they are made once, a block of
columns at a time, by the dense aggregation.

Legend: O owned rows, I columns.
"""

from typing import Any

import numpy as np
import torch

from distgnn.ops.aggregation.spmm import Scales, aggregate
from distgnn.ops.dense.sparse_rows import SparseRows
from distgnn.ops.function import version_of
from distgnn.ops.graph_view import GraphView

COLUMNS = 256  # of a block


class SparseSums:
    """Sums of the sparse features of a graph, for each weighting of the arcs that a model uses.

    Args: graph: whose aggregation is exact; feats: its features.
    """

    def __init__(self, graph: GraphView, feats: SparseRows):
        self._graph, self._feats = graph, feats
        self._kept: dict[tuple[Any, ...], SparseRows] = {}

    def of(self, edge_weight: torch.Tensor | None, scales: Scales) -> SparseRows:
        """The aggregation of all owned rows, [O, I]. Collective: the first time."""
        weight = None if edge_weight is None else (id(edge_weight), version_of(edge_weight))
        key = (weight, *scales)
        if key not in self._kept:
            feats = self._feats
            num_columns = feats.shape[1] + feats.num_more  # a shift is aggregated as a column: sums of -q
            found: list[tuple[np.ndarray, ...]] = [(np.empty(0, np.int64), np.empty(0, np.int64), feats.values[:0])]
            for first in range(0, num_columns, COLUMNS):
                block = torch.from_numpy(self._block(first, min(first + COLUMNS, num_columns)))
                sums = aggregate(self._graph, block, edge_weight, scales, None)[0].numpy()
                kept = sums != 0
                kept[:, max(feats.shape[1] - first, 0) :] = True  # columns of the shift stand in every row
                rows, columns = np.nonzero(kept)
                found.append((rows, columns + first, sums[rows, columns]))
            rows, columns, values = (np.concatenate(pieces) for pieces in zip(*found, strict=True))
            order = np.argsort(rows, kind="stable")
            indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(feats)))])
            self._kept[key] = feats.of_columns(indptr, columns[order], values[order])
        return self._kept[key]

    def _block(self, first: int, last: int) -> np.ndarray:
        """Some columns of the features as dense rows."""
        feats = self._feats
        inside = np.flatnonzero((feats.indices >= first) & (feats.indices < last))
        rows = np.searchsorted(feats.indptr, inside, side="right") - 1
        out = np.zeros((len(feats), last - first), feats.values.dtype)
        np.add.at(out, (rows, feats.indices[inside] - first), feats.values[inside])
        return out
