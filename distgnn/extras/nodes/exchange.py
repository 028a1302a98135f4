"""NodeExchange: the exact exchange of one plan where ranks of a node share memory.

Legend: O owned rows, S source halos, T target halos, U rows of the unions that this rank leads, D width.

    broadcast   owner -> a message per other node, to its leader's shared rows
                owner packs straight into the shared source halos of the ranks of its node: no message
                ranks of the node read their rows out of what the leader received
    reduce      ranks write partial sums into shared rows; leader adds those for one owner: a message per other node
                owner adds what lies in the shared rows of its node: no message, no copy

Order of sums: an owner adds node by node, in the order of nodes; its own node's partial sums one by one in the order of
ranks, another node's as one sum, which was made in the order of ranks. So the bits depend on which ranks share
a node, and on nothing else: not on arrival, not on who leads.

Buffers, beside `Exchange`'s: source halos that `finish_broadcast` returns and `target_rows` are shared rows
(`SharedRows`): two slots, so that a rank may be one exchange of the same width ahead of the others on its node.
"""

from collections.abc import Iterator

import numpy as np

from distgnn import kernels
from distgnn.comm.exchange import Exchange
from distgnn.comm.transport import Transport
from distgnn.extras.nodes.plan import NodePlan
from distgnn.extras.nodes.shared_rows import BEGUN, PASSED_ON, READ, WRITTEN, SharedRows


class NodeExchange(Exchange):
    """The synchronous schedule of one plan: the verbs, and the rules, of `Exchange`.

    Collective: as `Exchange`; and the first use of a width or dtype makes shared memory, over the node.
    """

    def __init__(self, plan: NodePlan, transport: Transport):
        super().__init__(plan.flat, transport)
        self.node_plan = plan
        self.between: Exchange = Exchange(plan.between, transport)
        self._passing: tuple[SharedRows, int] | None = None  # a broadcast that this rank must still pass on
        self._adding: tuple[SharedRows, int] | None = None  # a reduce for which it must still add and send
        self._now: tuple[SharedRows, int]
        self._shared: dict[tuple, SharedRows] = {}
        # Numbers of ranks in the node's communicator
        nodes, flat = plan.nodes, plan.flat
        self._everyone = range(len(nodes.near))
        self._led_by = {owner: nodes.near.index(nodes.leader(owner, nodes.here)) for owner in plan.far_owners}
        self._leaders = sorted(set(self._led_by.values()))  # who receive rows of other nodes for this rank
        num_sources, num_targets = np.diff(flat.source_indptr), np.diff(flat.reduce_indptr)
        self._near_owners = [place for place, rank in enumerate(nodes.near) if num_sources[rank]]
        self._near_targets = [place for place, rank in enumerate(nodes.near) if num_targets[rank]]
        # Whose partial sums this rank adds as a leader
        self._added = [place for place, one in enumerate(plan.neighbours) if one.targets.places]

    def start_broadcast(self, rows: np.ndarray, into: np.ndarray | None = None, in_pieces: bool = False) -> None:
        """Send owned `rows` [O, D] to other nodes, and write them into the source halos of this one. Collective."""
        assert into is None, "late rows do not travel by nodes"
        plan, neighbours = self.plan, self.node_plan.neighbours
        shared = self._rows_of("sources", plan.num_source_halos + self.between.plan.num_source_halos, rows)
        shared.use += 1
        use = shared.use
        self._now = self._passing = shared, use
        shared.announce(BEGUN, use)
        # What lies in the slot is of use - 2: who began use - 1 no longer reads it
        shared.wait(BEGUN, self._everyone, use - 1)
        self.between.start_broadcast(rows, into=shared.mine(use)[plan.num_source_halos :], in_pieces=in_pieces)
        with self.transport.counters.timing("pack_seconds"):
            for place, rank in enumerate(self.node_plan.nodes.near):
                chosen = plan.broadcast_rows[plan.broadcast_indptr[rank] : plan.broadcast_indptr[rank + 1]]
                if len(chosen):
                    first = int(neighbours[place].sources.indptr[plan.part_id])
                    kernels.pack_rows(rows, chosen, out=shared.rows(place, use)[first : first + len(chosen)])
        shared.announce(WRITTEN, use)

    def finish_broadcast(self) -> np.ndarray:
        """Wait for the source halos and return them, [S, D]; valid until the graph's next broadcast."""
        (shared, use), indptr = self._now, self.plan.source_indptr
        self.between.finish_broadcast()
        self._pass_on()
        shared.wait(WRITTEN, self._near_owners, use, self.between.tag)
        shared.wait(PASSED_ON, self._leaders, use, self.between.tag)
        sources = shared.mine(use)[: self.plan.num_source_halos]
        with self.transport.counters.timing("pack_seconds"):
            for owner, place in self._led_by.items():
                one, mine = self.node_plan.neighbours[place], slice(int(indptr[owner]), int(indptr[owner + 1]))
                inbox = shared.rows(place, use)[int(one.sources.indptr[-1]) :]  # [U, D] of the leader
                received = inbox[one.sources.union[owner] : one.sources.union[owner + 1]]
                kernels.pack_rows(received, self.node_plan.source_places[mine], out=sources[mine])
        return sources

    def target_rows(self, like: np.ndarray) -> np.ndarray:
        shared = self._rows_of("targets", self.plan.num_target_halos, like)
        shared.wait(READ, self._everyone, shared.use - 1)
        return shared.mine(shared.use + 1)

    def start_reduce(self, targets: np.ndarray, into: np.ndarray | None = None) -> None:
        """Show partial sums `targets` [T, D] to the node; leaders send their sums later. Collective: yes."""
        assert into is None, "late partial sums do not travel by nodes"
        shared = self._rows_of("targets", self.plan.num_target_halos, targets)
        shared.use += 1
        self._now = self._adding = shared, shared.use
        own = shared.mine(shared.use)
        if targets.__array_interface__["data"] != own.__array_interface__["data"]:  # not written in place
            np.copyto(own, targets)
        shared.announce(READ, shared.use - 1)
        shared.announce(WRITTEN, shared.use)
        self.between.expect_partials(targets)
        self._add_and_send()

    def finish_reduce(self, out: np.ndarray) -> None:
        """Add the partial sums of other ranks to owned rows `out` [O, D], in the order of nodes. Collective: yes."""
        (shared, use), plan, nodes = self._now, self.node_plan, self.node_plan.nodes
        tag = self.between.tag
        if self._adding:
            shared.wait(WRITTEN, self._added, use, tag)
            self._add_and_send()
        shared.wait(WRITTEN, self._near_targets, use, tag)
        partials, indptr = self.between.arrived(), plan.between.reduce_indptr
        with self.transport.counters.timing("pack_seconds"):
            for rank in range(plan.flat.num_parts):
                if indptr[rank + 1] > indptr[rank]:
                    kernels.add_rows(out, self.between.reduced_rows(rank), partials[indptr[rank] : indptr[rank + 1]])
                elif not nodes.is_far(rank) and len(rows := self.reduced_rows(rank)):
                    place = nodes.near.index(rank)
                    first = int(plan.neighbours[place].targets.indptr[plan.flat.part_id])
                    kernels.add_rows(out, rows, shared.rows(place, use)[first : first + len(rows)])
        shared.announce(READ, use)

    def reduce_by_rank(self, targets: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """As in `Exchange`, by plain messages: what is no sum is not put together on the node. Collective: yes."""
        return Exchange(self.plan, self.transport).reduce_by_rank(targets)

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
        """Add the node's partial sums for the owners that this rank leads for, once all are there, and send them.

        Partial sums are added in the order of ranks.
        """
        if self._adding is None or not self._adding[0].reached(WRITTEN, self._added, self._adding[1]):
            return
        shared, use = self._adding
        self._adding = None
        sums, indptr = self.between.target_rows(shared.mine(use)), self.between.plan.target_indptr
        with self.transport.counters.timing("pack_seconds"):
            sums[:] = 0
            for place in self._added:
                one = self.node_plan.neighbours[place]
                for owner, places in one.targets.places.items():
                    first = int(one.targets.indptr[owner])
                    rows = shared.rows(place, use)[first : first + len(places)]
                    kernels.add_rows(sums[indptr[owner] : indptr[owner + 1]], places, rows)
        self.between.send_partials(sums)

    def _rows_of(self, role: str, num_rows: int, like: np.ndarray) -> SharedRows:
        """The shared rows of a role, "sources" [S + U, D] or "targets" [T, D].

        Collective over the node, the first time for a width and dtype.
        """
        key = (role, like.shape[1], like.dtype)
        if key not in self._shared:
            self._shared[key] = SharedRows(self.node_plan.nodes.comm, self.transport, num_rows, like)
        return self._shared[key]

    def blocks(self) -> list[tuple[str, object]]:
        return [("structure", self.node_plan), *super().blocks(), ("halo rows", self._shared)]

    def buffer_bytes(self) -> int:
        return sum(one.num_bytes for one in self._shared.values())
