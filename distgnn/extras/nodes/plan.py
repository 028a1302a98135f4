"""NodePlan: what an ExchangePlan becomes when ranks of a node receive, add and send for each other.

Legend: P ranks, R ranks of this node, S / T source and target halos of this rank, U rows of a union.

    union            of an owner and a node: the owner's rows that any rank of the node has as source (or target) halo,
                     each once, in the order of the owner's rows
    leader           of an owner and a node: the rank there that receives the union, or sends the sums of its rows
    place            of a halo: its number in the union of its owner and its node

    between          the plan of the messages between nodes: owners and leaders; a union is one range of it
"""

from dataclasses import dataclass, replace

import numpy as np

from distgnn.comm.plans import indptr_of
from distgnn.comm.transport import Transport
from distgnn.extras.nodes.groups import Nodes
from distgnn.partition import ExchangePlan


@dataclass(frozen=True)
class Halos:
    """Source or target halos of a rank of the node, as far as this rank needs them.

    Args:
        indptr: int64 [P + 1], by owner, in the flat plan.
        union: int64 [P + 1], the unions that the rank leads, by owner: ranges of `between`.
        places: int32, by owner, of those owners for which *this* rank leads.
    """

    indptr: np.ndarray
    union: np.ndarray
    places: dict[int, np.ndarray]


@dataclass(frozen=True)
class Neighbour:
    """What this rank knows of a rank of its node (also of itself)."""

    sources: Halos
    targets: Halos

    def transposed(self) -> "Neighbour":
        return Neighbour(self.targets, self.sources)


@dataclass(frozen=True)
class NodePlan:
    """One rank's side of every node-aware exchange.

    Args:
        flat: who sends which rows to whom without nodes.
        nodes: which ranks stand where.
        between: owners and leaders.
        source_places, target_places: int32 [S] and [T], places of this rank's halos; 0 where the owner is near.
        neighbours: the ranks of this node, in the order of ranks.
    """

    flat: ExchangePlan
    nodes: Nodes
    between: ExchangePlan
    source_places: np.ndarray
    target_places: np.ndarray
    neighbours: list[Neighbour]

    def transposed(self) -> "NodePlan":
        return replace(
            self,
            flat=self.flat.transposed(),
            between=self.between.transposed(),
            source_places=self.target_places,
            target_places=self.source_places,
            neighbours=[one.transposed() for one in self.neighbours],
        )

    @property
    def far_owners(self) -> list[int]:
        """Owners on other nodes of which this rank has source halos."""
        owners = np.flatnonzero(np.diff(self.flat.source_indptr))
        return [int(owner) for owner in owners if self.nodes.is_far(int(owner))]

    def rows_between_nodes(self) -> int:
        """Rows that this rank sends to other nodes in one broadcast and one reduce."""
        return len(self.between.broadcast_rows) + self.between.num_target_halos


@dataclass(frozen=True)
class _Half:
    """One verb, of this rank: unions that it sends as owner, by node; sizes of those for its node, by owner; places."""

    unions: dict[int, np.ndarray]
    sizes: np.ndarray
    places: np.ndarray


def make_node_plan(flat: ExchangePlan, transport: Transport, nodes: Nodes) -> NodePlan:
    """The node-aware form of a plan.

    Collective: yes; each owner tells each rank of other nodes the places of its halos, once (4 bytes each).
    """
    sources = _exchange_places(flat.broadcast_rows, flat.broadcast_indptr, flat.source_indptr, transport, nodes)
    targets = _exchange_places(flat.reduce_rows, flat.reduce_indptr, flat.target_indptr, transport, nodes)
    broadcast, reduce = _rows_by_rank(flat, nodes, sources), _rows_by_rank(flat, nodes, targets)
    between = replace(
        flat,
        broadcast_indptr=indptr_of([len(rows) for rows in broadcast]),
        broadcast_rows=np.concatenate(broadcast),
        source_indptr=indptr_of(_received(nodes, sources.sizes)),
        reduce_indptr=indptr_of([len(rows) for rows in reduce]),
        reduce_rows=np.concatenate(reduce),
        target_indptr=indptr_of(_received(nodes, targets.sizes)),
    )
    of_sources = _tell_halos(flat.source_indptr, between.source_indptr, sources.places, nodes)
    of_targets = _tell_halos(flat.target_indptr, between.target_indptr, targets.places, nodes)
    neighbours = [Neighbour(*both) for both in zip(of_sources, of_targets, strict=True)]
    return NodePlan(flat, nodes, between, sources.places, targets.places, neighbours)


def _tell_halos(indptr: np.ndarray, union: np.ndarray, places: np.ndarray, nodes: Nodes) -> list[Halos]:
    """Tell each rank of the node what it must know of this one; what they tell. Collective over the node."""
    leaving: list[dict[int, np.ndarray]] = [{} for _ in nodes.near]
    for owner in filter(nodes.is_far, range(len(indptr) - 1)):
        if indptr[owner + 1] > indptr[owner]:
            leader = nodes.near.index(nodes.leader(owner, nodes.here))
            leaving[leader][owner] = places[indptr[owner] : indptr[owner + 1]]
    tables = nodes.comm.allgather((indptr, union))
    told = zip(tables, nodes.comm.alltoall(leaving), strict=True)
    return [Halos(starts, unions, theirs) for (starts, unions), theirs in told]


def _exchange_places(
    rows: np.ndarray, owner_indptr: np.ndarray, halo_indptr: np.ndarray, transport: Transport, nodes: Nodes
) -> _Half:
    """Make the unions of this owner, and tell the halos their places. Collective: yes."""
    unions: dict[int, np.ndarray] = {}
    leaving = np.zeros(len(rows), np.int32)
    for node in range(nodes.num_nodes):
        if node == nodes.here:
            continue
        ranges = [slice(int(owner_indptr[rank]), int(owner_indptr[rank + 1])) for rank in nodes.members(node)]
        unions[node] = np.unique(np.concatenate([rows[one] for one in ranges]))
        for one in ranges:
            leaving[one] = np.searchsorted(unions[node], rows[one])
    mine = np.array([len(unions.get(int(node), ())) for node in nodes.of_rank], np.int64)
    sizes = np.empty_like(mine)
    transport.comm.Alltoall(mine, sizes)
    arriving = np.zeros(int(halo_indptr[-1]), np.int32)
    tag = transport.begin("places", 1)
    requests = []
    for rank in filter(nodes.is_far, range(transport.num_ranks)):
        requests += transport.receive(arriving[halo_indptr[rank] : halo_indptr[rank + 1]], rank, tag)
    for rank in filter(nodes.is_far, range(transport.num_ranks)):
        requests += transport.send(leaving[owner_indptr[rank] : owner_indptr[rank + 1]], rank, tag)
    transport.wait(requests, tag)
    return _Half(unions, sizes, arriving)


def _rows_by_rank(flat: ExchangePlan, nodes: Nodes, half: _Half) -> list[np.ndarray]:
    """The owner's rows that travel to each rank: unions, to leaders."""
    found = [flat.broadcast_rows[:0] for _ in nodes.of_rank]
    for node, union in half.unions.items():
        found[nodes.leader(nodes.rank, node)] = union
    return found


def _received(nodes: Nodes, sizes: np.ndarray) -> list[int]:
    """Rows that this rank receives of each owner: of far ones the union, if it leads for them."""
    leads = (nodes.is_far(owner) and nodes.leader(owner, nodes.here) == nodes.rank for owner in range(len(sizes)))
    return [int(size) * leads_for for size, leads_for in zip(sizes, leads, strict=True)]
