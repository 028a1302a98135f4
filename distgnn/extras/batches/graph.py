"""BatchGraph: what a model sees of a graph in a step on some of its vertices.

Its rows are the batch's owned vertices. Layers that add up rows of neighbours run on it unchanged; what they meet is a
sum over fresh and held rows (`aggregator.py`).

Legend: B rows of the batch that this rank owns, O owned rows, A local arcs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.extras.batches.aggregator import BatchAggregator, arcs_into
from distgnn.extras.batches.exchange import OwnedAndHalos
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.global_values import global_mean
from distgnn.graph.random_keys import DrawsByKeys
from distgnn.ops.aggregation.aggregator import RowScale, Scales, Site, whole_scales
from distgnn.ops.aggregation.spmm import spmm
from distgnn.ops.rowwise.sparse_rows import SparseRows

SHARED = (
    "buffers", "comm", "dtype", "edge_weight", "info", "multilabel", "num_classes", "num_feats", "num_ranks",
    "num_relations", "num_values", "random_keys", "rank", "transform_first", "transport", "tuning", "weight_dtype",
)  # fmt: skip


class BatchGraph(DrawsByKeys):
    """One step's share of a graph: a `GraphView` (`distgnn/ops/function.py`) of the batch's owned rows.

    Collective: the constructor, and every aggregation forward and backward.

    Args:
        batches: the `Batches` it is one of, whose exchanges are set to it. chosen: its vertices.
        num_global_nodes: of the batch, over all ranks.

    Notes: a batch may be used until the next one is made. `SHARED` names what is the whole graph's; so are degrees.
    """

    num_owned: int
    num_rows: int
    num_global_nodes: int
    row_ids: np.ndarray
    owned_ids: np.ndarray
    exchanges_exactly: bool
    aggregates_exactly: bool

    def __init__(self, batches: Any, chosen: OwnedAndHalos, num_global_nodes: int):
        whole: DistGraph = batches.graph
        self._batches, self._whole, self._chosen = batches, whole, chosen
        self.plain = self  # the task is on its own rows
        for name in SHARED:
            setattr(self, name, getattr(whole, name))
        self.rows: np.ndarray = np.flatnonzero(chosen.owned)
        self._index = torch.from_numpy(self.rows)
        self.num_owned = self.num_rows = len(self.rows)
        self.num_global_nodes = num_global_nodes
        self.row_ids = self.owned_ids = np.ascontiguousarray(whole.owned_ids[self.rows])
        self.labels: Any = whole.labels[self._index]
        self.train_mask: Any = whole.train_mask[self._index]
        self.feats: Any = self._take(whole.feats)
        self._scales: dict[tuple[str, float, int], RowScale] = {}
        self._backward: dict[bool, BatchAggregator] = {}
        self.constants: _BatchConstants = _BatchConstants(self)
        self.waits_for_rows: bool = whole.waits_for_rows
        self.factor_recorder: None = None  # refused: it takes x' t of exact t
        self.exchanges_exactly, self.aggregates_exactly = True, False
        self.forward_arcs: BatchAggregator = self._aggregator(whole.forward_arcs, backward=False)

    def __repr__(self) -> str:
        return f"BatchGraph({self.num_rows} of {self._whole.num_owned} owned rows of {self._whole!r})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a cluster batch has no {name!r}: it runs layers of distgnn.nn that add up rows of neighbours; leave "
            "--cluster-batches out for others"
        )

    def _take(self, rows: Any) -> Any:
        if isinstance(rows, SparseRows):
            mine = rows.rows_at(self.rows)
            kept: Any = self._batches.sparse_sums
            if kept is not None:
                mine.sums = lambda weight, scales: kept.of(weight, whole_scales(scales)).rows_at(self.rows)
            return mine
        out = self.buffers.empty(self.num_rows, rows.shape[1], rows.dtype)
        return torch.index_select(rows, 0, self._index, out=out)

    # --- arcs ------------------------------------------------------------------------------------------------

    def _aggregator(self, whole: Any, backward: bool) -> BatchAggregator:
        batches, arcs = self._batches, whole.arcs
        chosen = self._chosen.transposed() if backward else self._chosen
        halos = np.flatnonzero(chosen.targets)
        symmetric = backward and arcs is getattr(self._whole.forward_arcs, "arcs", None)
        if symmetric and np.array_equal(halos, self.forward_arcs.halos):
            into = self.forward_arcs.arcs  # a symmetric part is its own transpose, and so are its rows
        else:
            into = arcs_into(arcs, self.rows, halos)
        ways: dict[str, Any] = {"exchange": batches.exchanges[backward], "held": batches.held[backward]}
        return BatchAggregator(arcs=into, rows=self.rows, halos=halos, **ways)

    def backward_arcs(self, weighted: bool) -> BatchAggregator:
        if weighted not in self._backward:
            self._backward[weighted] = self._aggregator(self._whole.backward_arcs(weighted), backward=True)
        return self._backward[weighted]

    def degree_scale(self, kind: str, power: float, offset: int = 0) -> RowScale:
        """Factors max(degree + offset, 1) ** power; `owned` [B]."""
        key = (kind, power, offset)
        if key not in self._scales:
            self._scales[key] = self._whole.degree_scale(*key).of_rows(self.rows)
        return self._scales[key]

    def in_degrees(self) -> torch.Tensor:
        """In-degrees, int64 [B]."""
        return self._whole.in_degrees()[self._index]

    def has_zero_in_degree(self) -> bool:
        return self._whole.has_zero_in_degree()

    def num_nodes(self) -> int:
        return self.num_rows

    def num_edges(self) -> int:
        """A: weights of arcs are all local arcs'."""
        return self._whole.num_edges()

    def narrows(self, in_feats: int, out_feats: int) -> bool:
        """Does a layer of these widths multiply before it aggregates? Held products would be those of earlier
        weights."""
        return False

    def is_input(self, rows: torch.Tensor) -> bool:
        """Are these rows of the graph's features, whose aggregation is kept? Collective: yes."""
        return rows is self.feats and self._whole.is_input(self._whole.feats)

    def next_site(self) -> Site:
        """The number of the next exchange of this step: whose held rows it reads and writes."""
        return Site(self.random_keys.next_site(), self.step, self.seed)

    # --- losses and rows -------------------------------------------------------------------------------------

    def num_labelled(self, split: str) -> float:
        """Labelled rows of a split in a batch on average: a sum over the batch divided by it has the right mean."""
        return self._whole.num_labelled(split) * (1 / self._batches.num_micro)

    def global_mean(self, values: torch.Tensor) -> torch.Tensor:
        """The mean over the values of all ranks in this batch. Collective: as `DistGraph.global_mean`."""
        return global_mean(self, values)


class _BatchConstants:
    """Aggregations that are kept of all rows: a batch takes its own of them. Called as `ConstantRows`."""

    def __init__(self, batch: BatchGraph):
        self._batch = batch

    def get(
        self,
        rows: torch.Tensor,
        edge_weight: torch.Tensor | None,
        scales: Scales,
        compute: Callable[[bool], torch.Tensor],
        loops: object = None,
    ) -> torch.Tensor:
        """The kept aggregation of the graph's features at the batch's rows, or what `compute` gives."""
        batch = self._batch
        whole = batch._whole
        if loops is not None or rows is not batch.feats or not whole.constants.enabled:
            return compute(False)
        return batch._take(spmm(whole, whole.feats, edge_weight, *whole_scales(scales)))

    def holds(self, result: torch.Tensor) -> bool:
        return self._batch._whole.constants.holds(result)
