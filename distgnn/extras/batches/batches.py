"""Batches: the passes over a graph in batches of micro-parts, their strata, and what all batches share.

Legend: N vertices, O owned rows, S / T source and target halos, I columns; G micro-parts (of all strata).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.extras.batches.aggregator import HeldRows
from distgnn.extras.batches.exchange import BatchExchange, OwnedAndHalos
from distgnn.extras.batches.graph import BatchGraph
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.induced import to_copies
from distgnn.kernels.simd.random_vectors import derive_key, philox_python
from distgnn.ops.aggregation.aggregator import Scales
from distgnn.ops.aggregation.spmm import aggregate
from distgnn.ops.function import version_of
from distgnn.ops.rowwise.sparse_rows import SparseRows

COLUMNS = 256  # of features that are aggregated at a time
NUM_STRATA = 64


class Batches:
    """A graph in batches: each takes one micro-part of every stratum.

    Collective: the constructor, and each step of `of_pass`.

    Args:
        graph: exact, with update on owners, of parts with vertex clusters.
        num_micro: micro-parts of a stratum, which is the steps of a pass. num_strata: strata; with one micro-part they
            are all the same batch.

    Notes: the same batches for any cut and number of ranks. Memory: a row of each owned vertex and each halo copy for
        every aggregation of the model but the kept one, forward and backward.
    """

    def __init__(self, graph: DistGraph, num_micro: int, num_strata: int = NUM_STRATA):
        self.graph = graph
        self.num_micro = num_micro
        self.num_strata: int = num_strata if num_micro > 1 else 1
        keeps = isinstance(graph.feats, SparseRows) and graph.constants.enabled
        self.sparse_sums = SparseSums(graph, graph.feats) if keeps else None
        local = graph.local
        mine = micro_parts(np.asarray(local.cluster_places), local.num_nodes, self.num_strata, num_micro)
        counts = np.bincount(mine, minlength=self.num_strata * num_micro)
        self._sizes = sum_over_ranks(graph.comm, counts)
        every = np.concatenate([mine, to_copies(graph, local, mine[:, None].astype(np.float64))[:, 0].astype(np.int64)])
        self._micro_parts = OwnedAndHalos(mine, every[local.source_halo_rows], every[local.target_halo_rows])
        self._plans = graph.plan, graph.plan.transposed()
        self.exchanges = tuple(BatchExchange(plan, graph.transport) for plan in self._plans)  # forward and backward
        halos = local.num_source_halos, local.num_target_halos
        self.held = tuple(HeldRows(local.num_owned, count) for count in halos)

    def of_pass(self, number: int) -> Iterator[BatchGraph]:
        """The batches of a pass, one after the other: every vertex is in one of them."""
        order = orders(self.graph.seed, number, self.num_strata, self.num_micro)
        parts, (forward, backward) = self._micro_parts, self.exchanges
        for step in range(self.num_micro):
            taken = chosen_micro_parts(order, step)
            chosen = OwnedAndHalos(taken[parts.owned], taken[parts.sources], taken[parts.targets])
            forward.choose(self._plans[0], chosen)
            backward.choose(self._plans[1], chosen.transposed())
            yield BatchGraph(self, chosen, int(self._sizes[taken].sum()))

    def state_dict(self) -> dict[str, np.ndarray]:
        pairs = zip(("forward", "backward"), self.held, strict=True)
        return {f"{name}.{key}": array for name, held in pairs for key, array in held.state_dict().items()}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        for name, held in zip(("forward", "backward"), self.held, strict=True):
            mine = {key.split(".", 1)[1]: array for key, array in state.items() if key.startswith(f"{name}.")}
            held.load_state_dict(mine)


class SparseSums:
    """Sums of the sparse features of a graph, kept sparse, for each weighting of the arcs that a model uses.

    The first layer of a batch is then exact: products that come first would be held, of earlier weights.
    Sums have a few times the non-zeros of the features. They are made once, by the dense aggregation of some columns.

    Args: graph: whose aggregation is exact; feats: its features.
    """

    def __init__(self, graph: DistGraph, feats: SparseRows):
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


# Which vertices a step takes: one micro-part of every stratum, drawn without a state.
#
#     place p of a vertex in the cluster order, 0 … N - 1       (the partition folder has it; it does not know of ranks)
#     micro-part  q = p S M / N, rounded down                    S strata of M neighbouring micro-parts each
#     stratum     q / M, rounded down
#     pass e      stratum s takes its micro-parts in the order of a permutation of (seed, e, s): step k takes the k-th
#
# So a pass is M steps that meet every vertex once, and neither depends on the number of ranks.
#
# Legend: N vertices, S strata, M micro-parts of each.

STRATA_TAG = 0x73747261  # "stra"
LOW = 0xFFFFFFFF


def micro_parts(places: np.ndarray, num_nodes: int, num_strata: int, num_micro: int) -> np.ndarray:
    """The micro-part of each vertex, int64, from its place in the cluster order."""
    return places.astype(np.int64) * (num_strata * num_micro) // max(num_nodes, 1)


def orders(seed: int, pass_number: int, num_strata: int, num_micro: int) -> np.ndarray:
    """The order in which each stratum takes its micro-parts in a pass, int64 [S, M]: each row is a permutation."""
    key = derive_key(seed, pass_number, 0, STRATA_TAG)
    stratum, micro = (axis.astype(np.uint64) for axis in np.indices((num_strata, num_micro)))
    counter = (micro & LOW, micro >> 32, stratum, np.uint64(key[2]))
    high, low, *_ = philox_python(counter, (int(key[0]), int(key[1])))
    return np.argsort(high << np.uint64(32) | low, axis=1, kind="stable")


def chosen_micro_parts(order: np.ndarray, step: int) -> np.ndarray:
    """Whether step `step` of a pass takes each micro-part, bool [S M]; order: of `orders`."""
    num_strata, num_micro = order.shape
    chosen = np.zeros((num_strata, num_micro), dtype=bool)
    chosen[np.arange(num_strata), order[:, step]] = True
    return chosen.ravel()
