"""The delayed schedule, and narrow wires, between nodes: what travels is late or narrow, what the node does is not.

Legend: S / T source and target halos, U rows of unions, D width.

The messages are those of a DelayedExchange over `NodePlan.with_near`: unions between owners and leaders, and the pairs
inside the node as they are. Bins are cut at the same rows of the owner as without nodes, so a row travels, and counts,
in the same epochs; inside the node nothing is late beyond that.

    broadcast   take and send as in `EpochExchange`; a leader shows its node what it holds; each rank reads its halos
    reduce      ranks show their partial sums of this epoch's bin; a leader adds them, and sends the sums likewise

Rows on a narrow wire are rounded by their owner, so all ranks of a node read the same ones; sums of a node are rounded
once, after they were added.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from distgnn.comm.bins import Bin
from distgnn.comm.delayed import DelayedExchange, EpochExchange
from distgnn.comm.exchange import Exchange
from distgnn.comm.nodes.plan import NodePlan
from distgnn.comm.nodes.shared_rows import BEGUN, PASSED_ON, READ, WRITTEN
from distgnn.comm.nodes.stage import NodeStage, written
from distgnn.comm.page_memory import page_aligned_zeros
from distgnn.comm.transport import Transport
from distgnn.comm.wire import Wire


class NodeDelayed(DelayedExchange):
    """A `DelayedExchange` between nodes.

    Collective: the constructor.

    Args:
        plan: node-aware.
        flat_bins: of the flat plan: which target halos are due in which epoch.
        bins: of `plan.with_near`, cut at the same rows.
        wire: as of the flat plan.
        others: as `DelayedExchange`.
    """

    def __init__(
        self,
        plan: NodePlan,
        transport: Transport,
        flat_bins: list[Bin],
        bins: list[Bin],
        delay: int,
        warmup: int,
        wire: Wire,
        *,
        late_row_average: float = 0.0,
    ):
        exact = Exchange(plan.with_near, transport, plan.nodes.by_node())
        wire = wire if wire.whole else replace(wire, halo_ids=_ids_of_sums(plan, wire.halo_ids))
        super().__init__(exact, bins, delay, warmup, wire, late_row_average=late_row_average)
        self.node_plan = plan
        self.flat_bins = flat_bins
        self.stage: NodeStage = NodeStage(plan, transport)
        self._sources: dict[tuple, np.ndarray] = {}

    def at(self, site: int, epoch: int, seed: int = 0) -> "NodeEpochExchange":
        return NodeEpochExchange(self, site, epoch, seed)

    def sources(self, like: np.ndarray) -> np.ndarray:
        """This rank's own buffer for source halos [S, D]."""
        key = (like.shape[1], like.dtype)
        if key not in self._sources:
            shape = (self.node_plan.flat.num_source_halos, like.shape[1])
            self._sources[key] = page_aligned_zeros(shape, like.dtype)
        return self._sources[key]

    def drain(self) -> None:
        super().drain()
        self.exact.drain()

    def blocks(self) -> list[tuple[str, object]]:
        return [*super().blocks(), *self.exact.blocks(), ("halo rows", (self.stage, self._sources))]

    def buffer_bytes(self) -> int:
        own = sum(buffer.nbytes for buffer in self._sources.values())
        return super().buffer_bytes() + self.stage.num_bytes() + own


def _ids_of_sums(plan: NodePlan, halo_ids: np.ndarray) -> np.ndarray:
    """Ids of the target halos of `with_near`, for random rounding: a sum has that of its lowest rank's halo, whoever
    leads. Collective over the node."""
    flat, wide, nodes = plan.flat, plan.with_near, plan.nodes
    own = [halo_ids[first:last] for first, last in pairwise(flat.target_indptr)]
    everyone = nodes.comm.allgather([ids if nodes.is_far(owner) else None for owner, ids in enumerate(own)])
    ids = np.zeros(wide.num_target_halos, halo_ids.dtype)
    for owner in range(flat.num_parts):
        mine = slice(int(wide.target_indptr[owner]), int(wide.target_indptr[owner + 1]))
        if not nodes.is_far(owner):
            ids[mine] = own[owner]
        for place in reversed(range(len(nodes.near)) if mine.stop > mine.start else ()):
            places = plan.neighbours[place].target_places.get(owner)
            if places is not None:
                ids[mine][places] = everyone[place][owner]
    return ids


@dataclass(frozen=True)
class NodeEpochExchange(EpochExchange):
    """An `EpochExchange` of a `NodeDelayed`.

    Collective: every verb.
    """

    late: NodeDelayed

    def finish_broadcast(self) -> np.ndarray:
        """The source halos [S, D]: what arrived last. Valid until the next broadcast of this width."""
        held = super().finish_broadcast()
        stage, plan = self.late.stage, self.late.node_plan
        shared, sources = stage.shared("inbox", held), self.late.sources(held)
        shared.use += 1
        shared.announce(BEGUN, shared.use)
        shared.wait(BEGUN, stage.everyone, shared.use - 1)
        inbox, wide = shared.mine(shared.use), plan.with_near.source_indptr
        for owner in range(plan.flat.num_parts):
            here = held[wide[owner] : wide[owner + 1]]
            if plan.nodes.is_far(owner):
                union = plan.between.source_indptr
                inbox[union[owner] : union[owner + 1]] = here
            else:
                sources[plan.flat.source_indptr[owner] : plan.flat.source_indptr[owner + 1]] = here
        shared.announce(PASSED_ON, shared.use)
        shared.wait(PASSED_ON, stage.leaders, shared.use)
        stage.collect(shared, shared.use, "inbox", sources)
        return sources

    def target_rows(self, like: np.ndarray) -> np.ndarray:
        return self.late.stage.next_targets(like)

    def target_pieces(self) -> list[slice]:
        if self.synchronous:
            return [slice(0, self.late.node_plan.flat.num_target_halos)]
        return self.late.flat_bins[self._number].targets_computed

    def start_reduce(self, targets: np.ndarray) -> None:
        """Show partial sums `targets` [T, D] of this epoch's bin to the node."""
        shared = self.late.stage.shared("targets", targets)
        shared.use += 1
        written(shared, shared.use, targets)
        shared.announce(READ, shared.use - 1)
        shared.announce(WRITTEN, shared.use)

    def finish_reduce(self, out: np.ndarray) -> None:
        """Add and send the node's sums, then add what counts to owned rows `out` [O, D], in the order of nodes."""
        late, stage, plan = self.late, self.late.stage, self.late.node_plan
        shared = stage.shared("targets", out)
        shared.wait(WRITTEN, stage.added, shared.use)
        # Target halos of `with_near`: this rank's own for ranks of its node, sums for those of others.
        sums, wide = late.exact.target_rows(out), plan.with_near.target_indptr
        flat, own = plan.flat.target_indptr, shared.mine(shared.use)
        whole = [[slice(int(a), int(b))] if b > a else [] for a, b in pairwise(wide)]
        with self.transport.counters.timing("pack_seconds"):
            for owner, pieces in enumerate(whole if self.synchronous else self.bin.targets_halo):
                for piece in pieces:
                    inside = slice(piece.start - int(wide[owner]), piece.stop - int(wide[owner]))
                    if plan.nodes.is_far(owner):
                        stage.add(shared, shared.use, owner, sums[piece], inside)
                    else:
                        sums[piece] = own[flat[owner] : flat[owner + 1]][inside]
        shared.announce(READ, shared.use)
        super().start_reduce(sums)
        super().finish_reduce(out)
