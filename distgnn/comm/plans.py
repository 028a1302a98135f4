"""Exchange plans made of others (update on copies, some rows), or of rows that a rank wants.

The halos of a graph follow from its cut, so their plan needs no messages. Which rows the pairs of a link prediction
need is known to one rank only: it asks the owners, once for pairs that stay and in each step for negatives.

Legend: N vertices, P parts, O owned rows, H halo copies in the order of local rows ([source only | both | target only]
of each owner), S source and T target halos, B rows that are asked for (borrowed).
"""

from dataclasses import replace

import numpy as np
from mpi4py import MPI

from distgnn.comm.transport import Transport
from distgnn.errors import InputError
from distgnn.partition import ExchangePlan


def indptr_of(counts: np.typing.ArrayLike) -> np.ndarray:
    """Where ranges with these numbers of entries begin and end, int64 [counts + 1]."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def plan_to_all_copies(plan: ExchangePlan, halo_counts: np.ndarray) -> ExchangePlan:
    """Broadcast totals to all H halo copies, whatever their role (numbered as local halo rows); reduce as in `plan`.

    Args:
        halo_counts: [P, 3], halo rows of each owner by role.
    """
    rows = []  # of each rank the owned rows of which it has a copy: source only, both, target only
    for rank in range(plan.num_parts):
        sources = plan.broadcast_rows[plan.broadcast_indptr[rank] : plan.broadcast_indptr[rank + 1]]
        targets = plan.reduce_rows[plan.reduce_indptr[rank] : plan.reduce_indptr[rank + 1]]
        num_both = len(np.intersect1d(sources, targets, assume_unique=True))
        rows.append(np.concatenate([sources, targets[num_both:]]))
    return replace(
        plan,
        broadcast_indptr=indptr_of([len(part) for part in rows]),
        broadcast_rows=np.concatenate(rows),
        source_indptr=indptr_of(halo_counts.sum(axis=1)),
    )


def plan_of_some(plan: ExchangePlan, owned: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> ExchangePlan:
    """The part of a plan that is about some rows, bool [O], [S] and [T]; owned rows are numbered anew."""
    sent, added = owned[plan.broadcast_rows], owned[plan.reduce_rows]
    numbers = (np.cumsum(owned) - 1).astype(np.int32)
    return replace(
        plan,
        num_owned=int(owned.sum()),
        broadcast_indptr=indptr_of(sent)[plan.broadcast_indptr],
        broadcast_rows=numbers[plan.broadcast_rows[sent]],
        source_indptr=indptr_of(sources)[plan.source_indptr],
        reduce_indptr=indptr_of(added)[plan.reduce_indptr],
        reduce_rows=numbers[plan.reduce_rows[added]],
        target_indptr=indptr_of(targets)[plan.target_indptr],
    )


class VertexOwners:
    """The rank that owns each vertex, and the local rows of those owned here.

    Collective: the constructor.

    Args: owned_ids: int64 [O], global ids in the order of local rows.

    Notes: memory: 2 bytes for each vertex of the graph, 12 for each owned one.
    """

    def __init__(self, comm: MPI.Comm, owned_ids: np.ndarray):
        last = comm.allreduce(int(owned_ids.max(initial=-1)), op=MPI.MAX)
        self._ranks = np.full(last + 1, -1, dtype=np.int16)
        for rank in range(comm.size):
            self._ranks[comm.bcast(owned_ids if rank == comm.rank else None, root=rank)] = rank
        self._order = np.argsort(owned_ids).astype(np.int32)
        self._sorted = owned_ids[self._order]

    def check(self, ids: np.ndarray) -> None:
        """Raise InputError for the first id that is no vertex of the graph."""
        flat = ids.reshape(-1)
        bad = (flat < 0) | (flat >= len(self._ranks))
        if not bad.any():
            bad = self._ranks[flat] < 0
        if bad.any():
            raise InputError(f"{flat[np.argmax(bad)]} is no vertex of the graph: expected global ids of its vertices")

    def rank_of(self, ids: np.ndarray) -> np.ndarray:
        """Owners of vertices, int16."""
        return self._ranks[ids]

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Local rows of vertices that are owned here, int32."""
        return self._order[np.searchsorted(self._sorted, ids)]


def request_plan(transport: Transport, owners: VertexOwners, ids: np.ndarray, num_owned: int) -> ExchangePlan:
    """The plan whose broadcast fetches the rows of other ranks' vertices, and whose reduce gives numbers back to them.

    Collective: yes; ids travel once.

    Args: ids: int64 [B], sorted by (owner, id), each once, none owned here: the order in which their rows arrive.
    """
    counts = np.bincount(owners.rank_of(ids), minlength=transport.num_ranks).astype(np.int64)
    asked = np.empty_like(counts)
    transport.comm.Alltoall(counts, asked)
    there, here = indptr_of(asked), indptr_of(counts)
    tag = transport.begin("request", 1)
    wanted, rows = np.ascontiguousarray(ids, dtype=np.int64), np.empty(int(there[-1]), dtype=np.int64)
    requests = []
    for rank in np.flatnonzero(asked):
        requests += transport.receive(rows[there[rank] : there[rank + 1]], int(rank), tag)
    for rank in np.flatnonzero(counts):
        requests += transport.send(wanted[here[rank] : here[rank + 1]], int(rank), tag)
    transport.wait(requests, tag)
    local = owners.rows_of(rows).astype(np.int32)
    return ExchangePlan(
        transport.num_ranks,
        transport.rank,
        num_owned,
        broadcast_indptr=there,
        broadcast_rows=local,
        source_indptr=here,
        reduce_indptr=there,
        reduce_rows=local,
        target_indptr=here,
    )
