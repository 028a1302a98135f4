"""NodeExchange: the exact exchange of one plan where a row crosses the network once per node.

Legend: O owned rows, S source halos, T target halos, U rows of the unions that this rank leads, D width.

    broadcast   owner -- union --> leader of another node -- rows --> ranks of its node
                owner -- rows --> ranks of its own node
    reduce      ranks -- partial sums --> leader, which adds them -- sums of the union --> owner
                ranks of the owner's node -- partial sums --> owner

Each arrow is a plain exchange. Order of sums: an owner adds partial sums of its own node in the order of ranks, then a
sum of each other node, which its leader made in the order of ranks. So the bits depend on which ranks share a node, and
on nothing else: not on arrival, not on who leads.
"""

from collections.abc import Iterator

import numpy as np

from distgnn import kernels
from distgnn.comm.exchange import Exchange
from distgnn.comm.page_memory import MessageMemory
from distgnn.comm.transport import Transport
from distgnn.extras.nodes.plan import NodePlan


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
