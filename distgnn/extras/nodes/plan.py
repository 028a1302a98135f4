"""NodePlan: what an ExchangePlan becomes when a rank of a node receives, adds and sends for the others.

Legend: P ranks, R consecutive ranks of a node (the last one may have fewer), U rows of a union, F halos of other nodes'
owners.

    union            of an owner and a node: the owner's rows that any rank of the node has as source (or target) halo,
                     each once, in the order of the owner's rows
    leader           of an owner and a node: the rank there that receives the union, or sends the sums of its rows
    place            of a halo: its number in the union of its owner and its node
"""

from dataclasses import dataclass, replace

import numpy as np
from mpi4py import MPI

from distgnn.comm.plans import indptr_of
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
