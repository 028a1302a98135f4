"""NodeExchange: the exact exchange of one plan where a row crosses the network once per node.

    broadcast   owner -- union --> leader of another node -- rows --> ranks of its node
                owner -- rows --> ranks of its own node
    reduce      ranks -- partial sums --> leader, which adds them -- sums of the union --> owner
                ranks of the owner's node -- partial sums --> owner

    union       of an owner and a node: the owner's rows that any rank of the node has as source (or target) halo, each
                once, in the order of the owner's rows
    leader      of an owner and a node: the rank there that receives the union, or sends the sums of its rows
    place       of a halo: its number in the union of its owner and its node

Each arrow is a plain exchange. Order of sums: an owner adds partial sums of its own node in the order of ranks, then a
sum of each other node, which its leader made in the order of ranks. So the bits depend on which ranks share a node, and
on nothing else: not on arrival, not on who leads.

Legend: P ranks, R consecutive ranks of a node (the last one may have fewer), F halos of other nodes' owners, D width.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from mpi4py import MPI

from distgnn import kernels
from distgnn.comm.exchange import Exchange
from distgnn.comm.plans import indptr_of
from distgnn.comm.transport import MessageMemory, Transport
from distgnn.config.extras import part_of
from distgnn.extras.nodes.extra import NodeOptions
from distgnn.graph.dist_graph import DistGraph
from distgnn.partition import ExchangePlan


@dataclass(frozen=True)
class Halos:
    """Where the source or target halos of a rank come from.

    Args:
        near: the halos that ranks of this node own: a range, because a node's ranks are consecutive.
        far: int32 [F], the others in the order in which leaders pass them on; turned: int32 [F], the way back, in the
            order of halos without the near ones.
    """

    near: slice
    far: np.ndarray
    turned: np.ndarray


@dataclass(frozen=True)
class NodePlan:
    """One rank's side of every exchange by nodes.

    Args:
        flat: who sends which rows to whom without nodes.
        steps: of owners and leaders, a union being one range; of ranks of one node; of leaders, whose owned rows are
            the unions that they received, and ranks of their node.
    """

    flat: ExchangePlan
    steps: tuple[ExchangePlan, ...]
    sources: Halos
    targets: Halos

    def transposed(self) -> "NodePlan":
        steps = tuple(one.transposed() for one in self.steps)
        return NodePlan(self.flat.transposed(), steps, self.targets, self.sources)


@dataclass(frozen=True)
class Nodes:
    """Who is on which node. `shift` turns the choice of leaders, which changes no bit of a result."""

    num_ranks: int
    ranks_per_node: int
    shift: int = 0

    def node(self, rank: int) -> range:
        """The ranks of a rank's node."""
        first = rank - rank % self.ranks_per_node
        return range(first, min(first + self.ranks_per_node, self.num_ranks))

    def all(self) -> list[range]:
        return [self.node(rank) for rank in range(0, self.num_ranks, self.ranks_per_node)]

    def leader(self, owner: int, node: range) -> int:
        """In turn, so that the ranks of a node share the work."""
        return node[(owner + self.shift) % len(node)]


def make_node_plan(flat: ExchangePlan, comm: MPI.Comm, nodes: Nodes) -> NodePlan:
    """The form of a plan by nodes.

    Collective: yes; each owner tells each rank of other nodes the places of its halos, once (4 bytes each).
    """
    broadcast, sources = _half(flat.broadcast_rows, flat.broadcast_indptr, flat.source_indptr, comm, nodes)
    reduce, targets = _half(flat.reduce_rows, flat.reduce_indptr, flat.target_indptr, comm, nodes)
    steps = tuple(_plan(flat, *one, *other) for one, other in zip(broadcast, reduce, strict=True))
    return NodePlan(flat, steps, sources, targets)


Rows = list[np.ndarray]  # of each rank: which of this one's it has as halos


def _plan(flat: ExchangePlan, sent: Rows, sources: np.ndarray, added: Rows, targets: np.ndarray) -> ExchangePlan:
    return replace(
        flat,
        broadcast_indptr=indptr_of([len(rows) for rows in sent]),
        broadcast_rows=np.concatenate(sent),
        source_indptr=sources,
        reduce_indptr=indptr_of([len(rows) for rows in added]),
        reduce_rows=np.concatenate(added),
        target_indptr=targets,
    )


def _half(
    rows: np.ndarray, indptr: np.ndarray, halos: np.ndarray, comm: MPI.Comm, nodes: Nodes
) -> tuple[list[tuple[Rows, np.ndarray]], Halos]:
    """One verb of the three plans (rows for each rank, ranges of halos by rank), and where halos come from."""
    here, ranks, none = nodes.node(comm.rank), range(comm.size), np.zeros(0, np.int32)
    mine = [rows[indptr[rank] : indptr[rank + 1]] for rank in ranks]
    unions = [none for _ in ranks]
    leaving = [(0, none) for _ in ranks]
    for node in nodes.all():
        if node != here:
            union = np.unique(np.concatenate([mine[rank] for rank in node]))
            unions[nodes.leader(comm.rank, node)] = union
            for rank in node:
                leaving[rank] = len(union), np.searchsorted(union, mine[rank]).astype(np.int32)
    told = comm.alltoall(leaving)  # of each owner: how long the union is, and the places of this rank's halos
    leaders = [nodes.leader(owner, here) for owner in ranks]
    inbox = indptr_of([told[owner][0] * (leaders[owner] == comm.rank) for owner in ranks])

    led = [[owner for owner in ranks if leaders[owner] == rank] if rank in here else [] for rank in ranks]
    wanted = [{owner: told[owner][1] for owner in owners} for owners in led]
    asked = comm.alltoall(wanted)
    passed = [np.concatenate([none, *(inbox[owner] + one for owner, one in of.items())]) for of in asked]
    starts = indptr_of([sum(map(len, of.values())) for of in wanted])

    near = slice(int(halos[here.start]), int(halos[here.stop]))
    found = [np.arange(halos[owner], halos[owner + 1]) for of in wanted for owner in of if owner not in here]
    far = np.concatenate([none, *found]).astype(np.int32)
    plans = [
        (unions, inbox),
        ([mine[rank] if rank in here else none for rank in ranks], np.clip(halos, near.start, near.stop) - near.start),
        ([one.astype(np.int32) for one in passed], starts),
    ]
    return plans, Halos(near, far, np.argsort(far).astype(np.int32))


class NodeExchange(Exchange):
    """The synchronous schedule of one plan: the verbs, and the rules, of `Exchange`.

    Args: back: the exchange of the transposed plan, whose memory this one uses, too.
    Notes: rows are passed on in `finish_broadcast`; `start_reduce` waits for the partial sums of this node.
    """

    def __init__(self, plan: NodePlan, transport: Transport, back: "NodeExchange | None" = None):
        super().__init__(plan.flat, transport)
        self.node_plan = plan
        own = [MessageMemory() for _ in range(3)] if back is None else [one.messages for one in back.steps]
        both = zip(plan.steps, own, strict=True)
        self.steps: tuple[Exchange, ...] = tuple(Exchange(step, transport, memory) for step, memory in both)
        self.between, self.near, self.passing = self.steps
        self._memory = [] if back else own

    def start_broadcast(self, rows: np.ndarray, into: np.ndarray | None = None, in_pieces: bool = False) -> None:
        self._sources: np.ndarray = self.source_rows(rows) if into is None else into
        self.between.start_broadcast(rows, in_pieces=in_pieces)
        self.near.start_broadcast(rows, into=self._sources[self.node_plan.sources.near], in_pieces=in_pieces)

    def finish_broadcast(self) -> np.ndarray:
        halos, sources = self.node_plan.sources, self._sources
        self.passing.start_broadcast(self.between.finish_broadcast())
        self.near.finish_broadcast()
        arrived = self.passing.finish_broadcast()
        first, stop = halos.near.start, halos.near.stop
        with self.transport.counters.timing("pack_seconds"):
            kernels.pack_rows(arrived, halos.turned[:first], out=sources[:first])
            kernels.pack_rows(arrived, halos.turned[first:], out=sources[stop:])
        return sources

    def start_reduce(self, targets: np.ndarray, into: np.ndarray | None = None) -> None:
        halos, passed = self.node_plan.targets, self.passing.target_rows(targets)
        with self.transport.counters.timing("pack_seconds"):
            kernels.pack_rows(targets, halos.far, out=passed)
        self.passing.start_reduce(passed)
        self.near.start_reduce(targets[halos.near])
        sums = self.between.target_rows(targets)
        sums[:] = 0
        self.passing.finish_reduce(sums)
        self.between.start_reduce(sums)

    def finish_reduce(self, out: np.ndarray) -> None:
        self.near.finish_reduce(out)
        self.between.finish_reduce(out)
        self.near.drain()  # what it sends lies in `target_rows`, which any exchange of the graph may take now

    def reduce_by_rank(self, targets: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """As in `Exchange`, by plain messages: what is no sum is not put together on the node. Collective: yes."""
        return Exchange(self.plan, self.transport).reduce_by_rank(targets)

    def progress(self) -> bool:
        return self.between.progress()

    def drain(self) -> None:
        super().drain()
        for one in self.steps:
            one.drain()

    def blocks(self) -> list[tuple[str, object]]:
        own = [("structure", self.node_plan), *super().blocks()]
        return own + [block for one in self.steps for block in one.blocks()]

    def buffer_bytes(self) -> int:
        return sum(one.num_bytes for one in self._memory)


class NodeGraph(DistGraph):
    """A DistGraph of ranks in nodes; it takes the same arguments."""

    def exact_exchanges(self) -> tuple[Exchange, Exchange]:
        nodes = Nodes(self.comm.size, part_of(self.schedule, NodeOptions).ranks_per_node)
        plan = make_node_plan(self.plan, self.comm, nodes)
        forward = NodeExchange(plan, self.transport)
        return forward, NodeExchange(plan.transposed(), self.transport, forward)
