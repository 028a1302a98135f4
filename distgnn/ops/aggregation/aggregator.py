"""Aggregation over all arcs of the whole graph, on numpy rows: the exchanges and the kernels in between.

Legend: O owned rows, S source halos, T target halos, D width, A local arcs.

    y[v] = target_scale[v] * sum over arcs (u -> v) of weight[arc] * source_scale[u] * x[u]

    owned rows x ---- start broadcast ------------------> other ranks' source halos
        | owned sources -> target halos, owned sources -> owned targets   (while rows travel)
        | half of other work that needs no message
    source halos <--- finish broadcast
        | source halos -> target halos ---- start reduce --> owners
        | source halos -> owned targets, the other half                   (while partial sums travel)
    y <-------------- finish reduce, added in the order of ranks

The transposed aggregation (backward) is the same function on transposed arcs: sources and targets swap.

Factors of vertices, by which an aggregation scales its sources and its targets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from distgnn import kernels
from distgnn.comm import Counters, DelayedExchange, EpochExchange, Exchange
from distgnn.partition import LocalGraph
from distgnn.partition.core.local_graph import BLOCKS


@dataclass(frozen=True, eq=False)
class RowScale:
    """One factor per vertex, wherever a rank meets the vertex: owned [O], source halos [S], target halos [T].

    Equal only to itself: graphs keep theirs, and kept aggregations are looked up by it.

    Example:
        >>> scale = graph.degree_scale("in", -1)
        >>> scale.owned.shape
        (60,)
    """

    owned: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    local: "RowScale | None" = None  # the factors where only a rank's own arcs take part (0c)
    whole: "RowScale | None" = None  # for a model that sees some of a part's owned rows: the factors of all of them

    def transposed(self) -> "RowScale":
        """For the transposed arcs: sources and targets change places."""
        whole = None if self.whole is None else self.whole.transposed()
        return RowScale(self.owned, self.targets, self.sources, self.local, whole)

    def of_rows(self, rows: Any) -> "RowScale":
        """The factors for a model that sees some of the owned rows, an index of numpy's."""
        return RowScale(self.owned[rows], self.sources, self.targets, whole=self)


Scales = tuple[RowScale | None, RowScale | None]  # of sources, of targets


def whole_scales(scales: Scales) -> Scales:
    """The factors of all owned rows behind the factors of some."""
    sources, targets = ((one and one.whole) or one for one in scales)
    return sources, targets


NUM_PIECES = 8  # of the largest block: between pieces MPI makes progress


@dataclass(frozen=True)
class Block:
    """CSR of the arcs between one kind of targets and one kind of sources.

    `first_arc` is where the block's arcs begin in the local arc numbering; `positions` maps the CSR position to
    the arc, counted from there (None: in order). `tuning`: what was measured for the graph that the block is of.
    """

    indptr: np.ndarray
    indices: np.ndarray
    first_arc: int
    positions: np.ndarray | None
    tuning: kernels.Tuning

    @property
    def num_arcs(self) -> int:
        return len(self.indices)

    @property
    def weights(self) -> slice:
        """The range of local arcs that `positions` counts in."""
        return slice(self.first_arc, self.first_arc + self.num_arcs)

    @cached_property
    def _blocked(self) -> dict[int, kernels.BlockedCsr]:
        """By rows of a block; a model has one or two widths where blocks pay."""
        return {}

    def blocked(self, rows: np.ndarray) -> kernels.BlockedCsr | None:
        """The arcs in blocks of sources, where measured to be quicker for such rows (kernels/graph/aggregate.py)."""
        row_bytes = rows.shape[1] * rows.itemsize
        if not self.tuning.goes_by_blocks(row_bytes):
            return None
        size = kernels.block_rows(len(self.indptr) - 1, len(rows), self.num_arcs, row_bytes)
        if size and size not in self._blocked:
            self._blocked[size] = kernels.block_csr(self.indptr, self.indices, len(rows), size)
        return self._blocked.get(size)

    def with_loops(self, missing: np.ndarray) -> "Block":
        """This square block with an arc from each of some rows [O] to itself; for sums without weights per arc."""
        rows = np.flatnonzero(missing)
        indices = np.insert(self.indices, self.indptr[rows], rows.astype(self.indices.dtype))
        before = np.concatenate([[0], np.cumsum(missing)]).astype(self.indptr.dtype)
        return Block(self.indptr + before, indices, self.first_arc, None, self.tuning)

    def transposed(self, num_columns: int) -> "Block":
        indptr, indices, places = kernels.transpose_csr(self.indptr, self.indices, num_columns)
        positions = places if self.positions is None else self.positions[places]
        return Block(indptr, indices, self.first_arc, positions, self.tuning)


@dataclass(eq=False)
class Arcs:
    """One rank's arcs in four blocks, named targets_sources."""

    owned_owned: Block
    owned_halo: Block
    halo_owned: Block
    halo_halo: Block
    _looped: "tuple[np.ndarray, Arcs] | None" = field(default=None, init=False)

    @classmethod
    def of(cls, local: LocalGraph, tuning: kernels.Tuning) -> "Arcs":
        """The forward arcs of a part, on the arrays it was loaded with (nothing is copied)."""
        blocks, first_arc = {}, 0
        for name in BLOCKS:
            csr = local.blocks[name]
            blocks[name] = Block(csr.indptr, csr.indices, first_arc, None, tuning)
            first_arc += len(csr.indices)
        return cls(**blocks)

    def with_loops(self, missing: np.ndarray) -> "Arcs":
        """These and an arc from each of some owned vertices (bool [O]) to itself; kept for the same array."""
        if self._looped is None or self._looped[0] is not missing:
            first = self.owned_owned.with_loops(missing)
            self._looped = missing, Arcs(first, self.owned_halo, self.halo_owned, self.halo_halo)
        return self._looped[1]

    def transposed(self, num_owned: int, num_sources: int, symmetric: bool, weighted: bool) -> "Arcs":
        """The arcs turned round. A symmetric part without weights is its own transpose: no memory is spent."""
        if symmetric and not weighted:
            return self
        return Arcs(
            self.owned_owned.transposed(num_owned),
            self.halo_owned.transposed(num_owned),
            self.owned_halo.transposed(num_sources),
            self.halo_halo.transposed(num_sources),
        )

    @property
    def num_arcs(self) -> int:
        return sum(b.num_arcs for b in (self.owned_owned, self.owned_halo, self.halo_owned, self.halo_halo))

    @cached_property
    def pieces(self) -> list[slice]:
        """Row ranges of the owned_owned block with about equal numbers of arcs.

        Notes: few where there is a hub, whose row is one thread's work: in a small piece the others would wait for it.
        """
        indptr = np.asarray(self.owned_owned.indptr)
        hub = int(np.diff(indptr).max(initial=1)) * kernels.get_num_threads()
        pieces = min(NUM_PIECES, max(1, int(indptr[-1] - indptr[0]) // max(hub, 1)))
        cuts = np.searchsorted(indptr, np.linspace(indptr[0], indptr[-1], pieces + 1)[1:-1])
        bounds = np.unique(np.concatenate([[0], cuts, [len(indptr) - 1]]))
        return [slice(int(a), int(b)) for a, b in pairwise(bounds)]


class Site(NamedTuple):
    """One exchange of the model: its number in the training step, the epoch, and the seed of random rounding."""

    number: int
    epoch: int
    seed: int = 0


@dataclass
class Aggregator:
    """One direction of aggregation: arcs, the exact exchange that goes with them, and the delayed one if there is one.

    Collective: `__call__`.

    Attributes: sums_only: where rows on arcs cannot be had, what messages, max and attention need instead.
    """

    sums_only: ClassVar[str] = ""

    arcs: Arcs
    exchange: Exchange
    delayed: DelayedExchange | None = None

    def __call__(
        self,
        rows: np.ndarray,
        edge_weight: np.ndarray | None = None,
        scales: Scales = (None, None),
        site: Site | None = None,
        out: np.ndarray | None = None,
        overlap_work: Sequence[Callable[..., Any]] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Aggregate owned `rows` [O, D] over all arcs of the graph.

        Args:
            site: where in the training step a delayed exchange stands; None: exact.
            out: where to write, [O, D]; on several ranks sums travel in its dtype.
            overlap_work: other work, in pieces, to do while messages travel.

        Returns:
            The owned result [O, D] of targets, and the source halos' rows [S, D] (valid until the exchange's next
            broadcast).
        """
        arcs = self.arcs
        exchange = self.exchange if site is None or self.delayed is None else self.delayed.at(*site)
        counters, weight, (source, target) = exchange.transport.counters, edge_weight, scales
        from_owned, to_owned = source and source.owned, target and target.owned
        from_halos, to_halos = source and source.sources, target and target.targets
        out = np.empty((self.num_targets, rows.shape[1]), rows.dtype) if out is None else out
        if exchange.transport.num_ranks == 1:
            run_block(counters, arcs.owned_owned, rows, out, (weight, from_owned, to_owned))
            do_work(overlap_work, exchange)
            return out, rows[:0]
        half = len(overlap_work) // 2
        if exchange is self.exchange and exchange.transport.in_pieces:
            return self._in_pieces(rows, out, weight, scales, overlap_work)
        targets = exchange.target_rows(out)
        exchange.start_broadcast(rows)
        for piece in exchange.target_pieces():
            run_block(counters, arcs.halo_owned, rows, targets[piece], (weight, from_owned, to_halos), piece)
        for piece in arcs.pieces:
            run_block(counters, arcs.owned_owned, rows, out[piece], (weight, from_owned, to_owned), piece)
            exchange.progress()
        do_work(overlap_work[:half], exchange)
        sources = exchange.finish_broadcast()
        for piece in exchange.target_pieces():
            factors = weight, from_halos, to_halos
            run_block(counters, arcs.halo_halo, sources, targets[piece], factors, piece, accumulate=True)
        exchange.start_reduce(targets)
        run_block(counters, arcs.owned_halo, sources, out, (weight, from_halos, to_owned), accumulate=True)
        do_work(overlap_work[half:], exchange)
        exchange.finish_reduce(out)
        return out, sources

    def _in_pieces(
        self, rows: np.ndarray, out: np.ndarray, weight: np.ndarray | None, scales: Scales, overlap_work: Sequence[Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same bits in less memory: partial sums of target halos are made in pieces, when all rows have arrived.

        Of rows that travel some columns at a time (`Transport.column_piece`) the last ones are returned as `sources`.
        """
        arcs, exchange, (source, target) = self.arcs, self.exchange, scales
        counters, from_owned, to_owned = exchange.transport.counters, source and source.owned, target and target.owned
        from_halos, to_halos, width = source and source.sources, target and target.targets, rows.shape[1]
        has_heads, sources = weight is not None and weight.ndim > 1, rows[:0]
        most = max(width, 1) if has_heads else exchange.transport.column_piece or max(width, 1)
        for first in range(0, max(width, 1), most):
            count = min(most, width - first)
            every, some = count == width, slice(first, first + count)
            exchange.start_broadcast(rows if every else rows[:, some])
            for piece in arcs.pieces if first == 0 else ():
                run_block(counters, arcs.owned_owned, rows, out[piece], (weight, from_owned, to_owned), piece)
                exchange.progress()
            sources = exchange.finish_broadcast()
            into_out, into_piece = (None, None) if every else ((0, first, count), (first, 0, count))
            factors = weight, from_halos, to_owned
            run_block(counters, arcs.owned_halo, sources, out, factors, accumulate=True, columns=into_out)

            def make(piece: slice, into: np.ndarray, sources: np.ndarray = sources, columns: Any = into_piece) -> None:
                factors = weight, from_owned, to_halos
                run_block(counters, arcs.halo_owned, rows, into, factors, piece, columns=columns)
                factors = weight, from_halos, to_halos
                run_block(counters, arcs.halo_halo, sources, into, factors, piece, accumulate=True)

            exchange.reduce_made(make, out if every else out[:, some])
        do_work(overlap_work, exchange)  # may be written over rows
        return out, sources

    @property
    def num_arcs(self) -> int:
        return self.arcs.num_arcs

    @property
    def num_targets(self) -> int:
        """Owned rows that sums go to."""
        return len(self.arcs.owned_owned.indptr) - 1

    def arc_dots(
        self, rows: np.ndarray, sources: np.ndarray, grads: np.ndarray, target_grads: np.ndarray, scales: Scales
    ) -> np.ndarray:
        """target_scale[v] * source_scale[u] * <grads[v], rows[u]> of every local arc, [A]."""
        arcs, (source_scale, target_scale) = self.arcs, scales
        out = np.empty(self.num_arcs, rows.dtype)
        for block, source_rows, source_kind, target_rows, target_kind in (
            (arcs.owned_owned, rows, "owned", grads, "owned"),
            (arcs.owned_halo, sources, "sources", grads, "owned"),
            (arcs.halo_owned, rows, "owned", target_grads, "targets"),
            (arcs.halo_halo, sources, "sources", target_grads, "targets"),
        ):
            source = source_rows if source_scale is None else source_rows * getattr(source_scale, source_kind)[:, None]
            target = target_rows if target_scale is None else target_rows * getattr(target_scale, target_kind)[:, None]
            out[block.weights] = kernels.sddmm(block.indptr, block.indices, source, target)
        return out


def do_work(work: Sequence[Callable[..., Any]], exchange: Exchange | EpochExchange) -> None:
    """Pieces of other work, MPI called after each."""
    for piece in work:
        piece()
        exchange.progress()


def run_block(
    counters: Counters,
    block: Block,
    rows: np.ndarray,
    out: np.ndarray,
    factors: tuple[Any, ...],
    piece: slice | None = None,
    accumulate: bool = False,
    columns: tuple[int, int, int] | None = None,
) -> None:
    """One block: out (+)= target_scale * A(edge_weight) @ (source_scale * rows), for all its targets or a piece.

    Args: out: of the piece; factors: edge_weight, source_scale and target_scale of the block's ends, or None each;
        columns: see `kernels.spmm`.
    """
    if accumulate and block.num_arcs == 0:
        return
    edge_weight, source_scale, target_scale = factors
    piece = piece or slice(0, len(out))
    plain = edge_weight is None and columns is None and out.dtype == rows.dtype != np.uint16
    blocked = block.blocked(rows) if plain else None
    with counters.timing("aggregate_seconds"):
        if blocked:
            scale = None if target_scale is None else target_scale[piece]
            scales = {"source_scale": source_scale, "target_scale": scale}
            kernels.spmm_blocked(blocked, rows, None, out, **scales, accumulate=accumulate, piece=piece)
            return
        kernels.spmm(
            block.indptr[piece.start : piece.stop + 1],
            block.indices,
            rows,
            "sum",
            None if edge_weight is None else edge_weight[block.weights],
            out,
            edge_ids=None if edge_weight is None else block.positions,
            source_scale=source_scale,
            target_scale=None if target_scale is None else target_scale[piece],
            accumulate=accumulate,
            columns=columns,
        )
