"""NodeExchange: the exact exchange of one plan where ranks of a node share memory.

Legend: O owned rows, S source halos, T target halos, U rows of unions, D width.

    broadcast   owner -> a message per other node, to its leader's shared rows
                owner packs straight into the shared source halos of the ranks of its node: no message
                ranks of the node read their rows out of what the leader received
    reduce      ranks write partial sums into shared rows; leader adds those for one owner: a message per other node
                owner adds what lies in the shared rows of its node: no message, no copy

Order of sums: an owner adds node by node, in the order of nodes; its own node's partial sums one by one in the order of
ranks, those of another node as one sum, which was made in the order of ranks. So the bits depend on which ranks share
a node, and on nothing else: not on arrival, not on who leads.

Buffers, beside those of `Exchange`: source halos that `finish_broadcast` returns and `target_rows` are shared rows
(`SharedRows`): two slots, so that a rank may be one exchange of the same width ahead of the others on its node.
"""

from collections.abc import Iterator

import numpy as np

from distgnn import kernels
from distgnn.comm.exchange import Exchange
from distgnn.comm.nodes.plan import NodePlan
from distgnn.comm.nodes.shared_rows import BEGUN, PASSED_ON, READ, WRITTEN, SharedRows
from distgnn.comm.nodes.stage import NodeStage, written
from distgnn.comm.transport import Transport


class NodeExchange(Exchange):
    """The synchronous schedule of one plan: the verbs, and the rules, of `Exchange`.

    Collective: as `Exchange`; and the first use of a width or dtype makes shared memory, over the node.
    """

    def __init__(self, plan: NodePlan, transport: Transport):
        super().__init__(plan.flat, transport, plan.nodes.by_node())
        self.stage: NodeStage = NodeStage(plan, transport)
        self.between: Exchange = Exchange(plan.between, transport)
        self._flat = Exchange(plan.flat, transport)
        self._passing: tuple[SharedRows, int] | None = None  # a broadcast that this rank must still pass on
        self._adding: tuple[SharedRows, int] | None = None  # a reduce for which it must still add and send
        self._into: np.ndarray | None = None
        self._now: tuple[SharedRows, int]

    def start_broadcast(self, rows: np.ndarray, into: np.ndarray | None = None, in_pieces: bool = False) -> None:
        """Send owned `rows` [O, D] to other nodes, and write them into the source halos of this one. Collective."""
        stage, plan = self.stage, self.plan
        shared = stage.shared("sources", rows)
        shared.use += 1
        use, self._into = shared.use, into
        self._now = self._passing = shared, use
        shared.announce(BEGUN, use)
        # What lies in the slot is of use - 2: who began use - 1 no longer reads it
        shared.wait(BEGUN, stage.everyone, use - 1)
        inbox = stage.inbox(shared.mine(use), shared.place, "sources")
        self.between.start_broadcast(rows, into=inbox, in_pieces=in_pieces)
        with self.transport.counters.timing("pack_seconds"):
            for place, rank in enumerate(stage.plan.nodes.near):
                chosen = plan.broadcast_rows[plan.broadcast_indptr[rank] : plan.broadcast_indptr[rank + 1]]
                if len(chosen):
                    first = int(stage.plan.neighbours[place].source_indptr[self.plan.part_id])
                    kernels.pack_rows(rows, chosen, out=shared.rows(place, use)[first : first + len(chosen)])
        shared.announce(WRITTEN, use)

    def finish_broadcast(self) -> np.ndarray:
        """Wait for the source halos and return them, [S, D]; valid until the graph's next broadcast."""
        (shared, use), stage = self._now, self.stage
        self.between.finish_broadcast()
        self._pass_on()
        tag = self.between.tag
        shared.wait(WRITTEN, stage.near_owners, use, tag)
        shared.wait(PASSED_ON, stage.leaders, use, tag)
        sources = shared.mine(use)[: self.plan.num_source_halos]
        stage.collect(shared, use, "sources", sources)
        if self._into is None:
            return sources
        np.copyto(self._into, sources)
        return self._into

    def target_rows(self, like: np.ndarray) -> np.ndarray:
        return self.stage.next_targets(like)

    def start_reduce(self, targets: np.ndarray, into: np.ndarray | None = None) -> None:
        """Show partial sums `targets` [T, D] to the node; leaders send their sums later. Collective: yes.

        Args: into: not of use here: it would hold the sums of nodes.
        """
        shared = self.stage.shared("targets", targets)
        shared.use += 1
        self._now = self._adding = shared, shared.use
        written(shared, shared.use, targets)
        shared.announce(READ, shared.use - 1)
        shared.announce(WRITTEN, shared.use)
        self.between.expect_partials(targets)
        self._add_and_send()

    def finish_reduce(self, out: np.ndarray) -> None:
        """Add the partial sums of other ranks to owned rows `out` [O, D], in the order of nodes. Collective: yes."""
        (shared, use), stage = self._now, self.stage
        tag = self.between.tag
        if self._adding:
            shared.wait(WRITTEN, stage.added, use, tag)
            self._add_and_send()
        shared.wait(WRITTEN, stage.near_targets, use, tag)
        partials, plan, nodes = self.between.arrived(), stage.plan, stage.plan.nodes
        indptr = plan.between.reduce_indptr
        with self.transport.counters.timing("pack_seconds"):
            for rank in self.order:
                if indptr[rank + 1] > indptr[rank]:
                    kernels.add_rows(out, self.between.reduced_rows(rank), partials[indptr[rank] : indptr[rank + 1]])
                elif not nodes.is_far(rank) and len(rows := self.reduced_rows(rank)):
                    place = nodes.near.index(rank)
                    first = int(plan.neighbours[place].target_indptr[plan.flat.part_id])
                    kernels.add_rows(out, rows, shared.rows(place, use)[first : first + len(rows)])
        shared.announce(READ, use)

    def reduce_by_rank(self, targets: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """As in `Exchange`, by plain messages: what is no sum is not put together on the node. Collective: yes."""
        return self._flat.reduce_by_rank(targets)

    def progress(self) -> bool:
        """Let MPI move what is in flight, and do what others wait for: pass rows on, add and send the node's sums."""
        arrived = self.between.progress()
        if arrived:
            self._pass_on()
        self._add_and_send()
        return arrived

    def _pass_on(self) -> None:
        """The rows of other nodes are there: the ranks of the node may read them."""
        if self._passing:
            shared, use = self._passing
            self._passing = None
            shared.announce(PASSED_ON, use)

    def _add_and_send(self) -> None:
        """Add the node's partial sums for the owners that this rank leads for, once all are there, and send them."""
        if self._adding is None or not self._adding[0].reached(WRITTEN, self.stage.added, self._adding[1]):
            return
        shared, use = self._adding
        self._adding = None
        sums, indptr = self.between.target_rows(shared.mine(use)), self.stage.plan.between.target_indptr
        with self.transport.counters.timing("pack_seconds"):
            for owner in self.stage.plan.led_owners:
                self.stage.add(shared, use, owner, sums[indptr[owner] : indptr[owner + 1]])
        self.between.send_partials(sums)

    def drain(self) -> None:
        self.between.drain()
        self._flat.drain()

    def blocks(self) -> list[tuple[str, object]]:
        return [*self.between.blocks(), *self._flat.blocks(), ("halo rows", self.stage)]

    def buffer_bytes(self) -> int:
        return self.stage.num_bytes()
