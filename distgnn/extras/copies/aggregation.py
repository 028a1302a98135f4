"""Aggregation with update on copies, the form of the DistGNN paper: every copy of a vertex gets the whole sum.

Legend: O owned rows, H halo copies, V = O + H local rows, T target halos, D width.

    forward                                         backward (transposed)
    local arcs: all V rows from all V rows          owners add the gradients of all their copies
    target halos' partial sums -> owners, added     sums -> target halos (source-only copies: zero)
    owners' sums -> all halo copies                 transposed local arcs

The pair of exchanges is its own mirror image, so the gradient is exact. Under 0c nothing is exchanged and each copy
keeps what its own arcs give it.

Source: Md et al., DistGNN, SC'21, section 5 (cd-0, 0c).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from distgnn import kernels
from distgnn.comm import DelayedExchange, EpochExchange, Exchange
from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.aggregation.aggregator import Block, RowScale, Scales, Site, run_block
from distgnn.ops.aggregation.halo import reduce_onto
from distgnn.ops.edges.on_arcs import arc_ends
from distgnn.partition import LocalGraph


def arcs_of_all_rows(local: LocalGraph, tuning: kernels.Tuning) -> Block:
    """One CSR over all local rows [V]; `positions` maps to the local arc numbering."""
    ends = arc_ends(local, np.arange(local.num_rows, dtype=np.int32))
    indptr, indices, arcs = kernels.csr_from_edges(*ends, local.num_rows)
    return Block(indptr, indices, 0, arcs, tuning)


@dataclass
class CopyAggregator:
    """One direction of aggregation with update on copies.

    Collective: `__call__`, unless `no_exchange` and in a training step.

    Args:
        block: arcs over all local rows, forward or transposed.
        exchange: forward: broadcast to all copies, reduce from target halos; backward: its transpose.
        delayed: the same under cd-r.
        target_rows: local rows of target halos, [T].
        backward: exchange first, aggregate then.
        no_exchange: 0c, nothing is exchanged in training steps.
        arrivals: under the paper's rule the forward exchange, which knows what arrives in which epoch.
    """

    sums_only: ClassVar[str] = "update on owners: load the graph without copy_updates"

    block: Block
    exchange: Exchange
    delayed: DelayedExchange | None
    target_rows: np.ndarray
    num_owned: int
    backward: bool
    no_exchange: bool
    arrivals: DelayedExchange | None = None

    @property
    def num_arcs(self) -> int:
        return self.block.num_arcs

    def __call__(
        self,
        rows: np.ndarray,
        edge_weight: np.ndarray | None = None,
        scales: Scales = (None, None),
        site: Site | None = None,
        out: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Aggregate local `rows` [V, D]; returns [V, D] and the rows that gradients of edge weights need, [V, D]."""
        local_only, arrived = self.no_exchange and site is not None, self._arrived(site)
        source_scale, target_scale = map(_local, scales) if local_only else scales
        if arrived is not None and self.backward:
            local_only, source_scale = True, _scale_of_what_took_part(source_scale, arrived)
        if self.backward and not local_only:
            rows = self._add_copies_then_tell_targets(rows, site)
        out = np.empty_like(rows) if out is None else out
        factors = edge_weight, source_scale and source_scale.owned, target_scale and target_scale.owned
        halo, owned = slice(self.num_owned, len(rows)), slice(0, self.num_owned)
        counters = self.exchange.transport.counters
        run_block(counters, self.block, rows, out[halo], factors, halo)
        if self.backward or local_only:
            run_block(counters, self.block, rows, out[owned], factors, owned)
            return out, rows
        exchange = self._exchange_at(site)
        targets = kernels.pack_rows(out, self.target_rows, out=exchange.target_rows(out))
        exchange.start_reduce(targets)
        run_block(counters, self.block, rows, out[owned], factors, owned)
        exchange.finish_reduce(out[owned])
        exchange.start_broadcast(out[owned])
        copies = exchange.finish_broadcast()
        if arrived is None:
            out[halo] = copies
            return out, rows
        out[halo][arrived[halo]] = copies[arrived[halo]]
        if target_scale is not None and target_scale.local is not None:
            local_rows = np.flatnonzero(~arrived)
            out[local_rows] *= (target_scale.local.owned[local_rows] / target_scale.owned[local_rows])[:, None]
        return out, rows

    def _arrived(self, site: Site | None) -> np.ndarray | None:
        """Under the paper's rule: the local rows whose remote partial sums count in this epoch, bool [V].

        None: all rows' do.
        """
        if self.arrivals is None or site is None or self.arrivals.is_synchronous(site.epoch):
            return None
        arrived = np.zeros(len(self.block.indptr) - 1, bool)
        found, plan = self.arrivals.arrived(site.epoch), self.arrivals.plan
        if found is not None:
            for pieces in found.targets_owner:
                for piece in pieces:
                    arrived[plan.reduce_rows[piece]] = True
            for pieces in found.sources_halo:
                for piece in pieces:
                    arrived[self.num_owned :][piece] = True
        return arrived

    def _add_copies_then_tell_targets(self, grads: np.ndarray, site: Site | None) -> np.ndarray:
        """The exchanges' transpose: [V, D] gradients of totals to [V, D] gradients of local partial sums."""
        exchange, partial = self._exchange_at(site), np.zeros_like(grads)
        partial[: self.num_owned] = grads[: self.num_owned]
        reduce_onto(exchange, grads[self.num_owned :], partial[: self.num_owned])
        exchange.start_broadcast(partial[: self.num_owned])
        partial[self.target_rows] = exchange.finish_broadcast()
        return partial

    def _exchange_at(self, site: Site | None) -> Exchange | EpochExchange:
        return self.exchange if site is None or self.delayed is None else self.delayed.at(*site)

    def arc_dots(
        self, rows: np.ndarray, _sources: np.ndarray, grads: np.ndarray, partial_grads: np.ndarray, scales: Scales
    ) -> np.ndarray:
        """target_scale[v] * source_scale[u] * <gradient of v's partial sum, rows[u]> of every local arc, [A]."""
        if self.no_exchange or self.arrivals is not None:
            raise on_all_ranks(InputError("edge weights are trained with --copy-updates held only"))
        source_scale, target_scale = scales
        source = rows if source_scale is None else rows * source_scale.owned[:, None]
        target = partial_grads if target_scale is None else partial_grads * target_scale.owned[:, None]
        out = np.empty(self.num_arcs, rows.dtype)
        block = self.block
        kernels.sddmm(block.indptr, block.indices, source, target, out=out, edge_ids=block.positions)
        return out


def _local(scale: RowScale | None) -> RowScale | None:
    return scale if scale is None or scale.local is None else scale.local


def _scale_of_what_took_part(scale: RowScale | None, arrived: np.ndarray) -> RowScale | None:
    """The factors of the forward pass of this epoch: rows that nothing arrived for divide by their own arcs."""
    if scale is None or scale.local is None:
        return scale
    factors = np.where(arrived, scale.owned, scale.local.owned)
    return RowScale(factors, factors, factors)
