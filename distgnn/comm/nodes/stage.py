"""The half of a node-aware exchange that stays inside the node: reading what a leader received, and adding for it.

Legend: S / T source and target halos of this rank, U rows of the unions that it leads, D width.
"""

import numpy as np

from distgnn import kernels
from distgnn.comm.nodes.plan import NodePlan
from distgnn.comm.nodes.shared_rows import READ, SharedRows
from distgnn.comm.transport import Transport


class NodeStage:
    """Shared rows of one plan, by what they are for, width and dtype.

    Attributes: numbers of ranks in the node's communicator:
        leaders: who receives rows of other nodes for this rank.
        near_owners: who writes source halos of this rank.
        near_targets: whose partial sums this rank adds as their owner.
        added: whose partial sums this rank adds as a leader.
    """

    def __init__(self, plan: NodePlan, transport: Transport):
        self.plan = plan
        self.transport = transport
        nodes, flat = plan.nodes, plan.flat
        self.everyone: range = range(len(nodes.near))
        self._led_by = {owner: nodes.near.index(nodes.leader(owner, nodes.here)) for owner in plan.far_owners}
        self.leaders: list[int] = sorted(set(self._led_by.values()))
        num_sources, num_targets = np.diff(flat.source_indptr), np.diff(flat.reduce_indptr)
        self.near_owners: list[int] = [place for place, rank in enumerate(nodes.near) if num_sources[rank]]
        self.near_targets: list[int] = [place for place, rank in enumerate(nodes.near) if num_targets[rank]]
        self.added: list[int] = [place for place, one in enumerate(plan.neighbours) if one.target_places]
        self._num_rows = {
            "sources": flat.num_source_halos + plan.between.num_source_halos,
            "inbox": plan.between.num_source_halos,
            "targets": flat.num_target_halos,
        }
        self._shared: dict[tuple, SharedRows] = {}
        self._chosen: dict[tuple, np.ndarray] = {}

    def shared(self, role: str, like: np.ndarray) -> SharedRows:
        """The shared rows of a role ("sources": [S + U, D], "inbox": [U, D], "targets": [T, D]).

        Collective over the node, the first time for a width and dtype.
        """
        key = (role, like.shape[1], like.dtype)
        if key not in self._shared:
            comm = self.plan.nodes.comm
            self._shared[key] = SharedRows(comm, self.transport, self._num_rows[role], like)
        return self._shared[key]

    def next_targets(self, like: np.ndarray) -> np.ndarray:
        """This rank's shared target halos [T, D] of the next use, with the width and dtype of `like` [*, D]."""
        shared = self.shared("targets", like)
        shared.wait(READ, self.everyone, shared.use - 1)
        return shared.mine(shared.use + 1)

    def inbox(self, rows: np.ndarray, place: int, role: str) -> np.ndarray:
        """Of a rank's shared rows those that it received for others, [U, D]."""
        return rows[int(self.plan.neighbours[place].source_indptr[-1]) :] if role == "sources" else rows

    def collect(self, shared: SharedRows, use: int, role: str, out: np.ndarray) -> None:
        """Source halos of far owners in `out` [S, D], out of what the leaders received."""
        plan = self.plan
        with self.transport.counters.timing("pack_seconds"):
            for owner, place in self._led_by.items():
                mine = slice(int(plan.flat.source_indptr[owner]), int(plan.flat.source_indptr[owner + 1]))
                union = plan.neighbours[place].source_union
                received = self.inbox(shared.rows(place, use), place, role)[union[owner] : union[owner + 1]]
                kernels.pack_rows(received, plan.source_places[mine], out=out[mine])

    def add(self, shared: SharedRows, use: int, owner: int, out: np.ndarray, piece: slice | None = None) -> None:
        """The node's sums for an owner that this rank leads for: out = partial sums, added in the order of ranks.

        Args: out: rows of the union, or of its `piece`.
        """
        out[:] = 0
        for place in self.added:
            one = self.plan.neighbours[place]
            if owner in one.target_places:
                first, places = int(one.target_indptr[owner]), one.target_places[owner]
                rows = shared.rows(place, use)[first : first + len(places)]
                if piece is not None:
                    # The numbers of those places that lie in a piece of the union
                    key = (owner, place, piece.start, piece.stop)
                    if key not in self._chosen:
                        inside = (places >= piece.start) & (places < piece.stop)
                        self._chosen[key] = np.flatnonzero(inside).astype(np.int32)
                    chosen = self._chosen[key]
                    rows, places = rows[chosen], places[chosen] - np.int32(piece.start)
                kernels.add_rows(out, places, rows)

    def num_bytes(self) -> int:
        return sum(one.num_bytes for one in self._shared.values())


def written(shared: SharedRows, use: int, rows: np.ndarray) -> None:
    """`rows` are this rank's rows of a use: copied there, unless the caller wrote them in place."""
    own = shared.mine(use)
    if rows.__array_interface__["data"] != own.__array_interface__["data"]:
        np.copyto(own, rows)
