"""Which ranks stand on which node, who of a node receives and sends for the others, and whether a run goes by nodes.

Legend: P ranks. Nodes are numbered in the order of their lowest ranks.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

from distgnn.comm.agree import raise_together
from distgnn.errors import DistGNNError, RunError
from distgnn.system.shared_memory import FOLDER, has_window_room
from distgnn.system.units import human_bytes

TRIED_BYTES = 4096
ROW_BYTES = 1024  # of a layer of 256 columns
SHARES = 6  # of a halo: its own row and its place in the union, and as target the other way, in two slots each


@dataclass(frozen=True)
class Nodes:
    """The nodes of a communicator's ranks.

    Args:
        of_rank: int64 [P], the node of each rank.
        rank: this rank.
        comm: the ranks of this rank's node, which share memory; in the order of ranks.
        shift: turns the choice of leaders, which changes no bit of a result.
    """

    of_rank: np.ndarray
    rank: int
    comm: MPI.Intracomm
    shift: int = 0

    @property
    def here(self) -> int:
        return int(self.of_rank[self.rank])

    @property
    def num_nodes(self) -> int:
        return int(self.of_rank.max()) + 1

    @property
    def near(self) -> list[int]:
        """The ranks of this node, ascending, this one among them; `comm` numbers them in this order."""
        return self.members(self.here)

    def is_far(self, rank: int) -> bool:
        return bool(self.of_rank[rank] != self.of_rank[self.rank])

    def members(self, node: int) -> list[int]:
        return [int(rank) for rank in np.flatnonzero(self.of_rank == node)]

    def leader(self, owner: int, node: int) -> int:
        """The rank of a node that receives an owner's rows for all of it, and sends the node's sums to that owner.

        In turn, so that the ranks of a node share the work.
        """
        members = self.members(node)
        return members[(owner + self.shift) % len(members)]

    def by_node(self) -> list[int]:
        """All ranks in the order in which partial sums are added: by node, inside a node by rank."""
        return [int(rank) for rank in np.argsort(self.of_rank, kind="stable")]


def find_nodes(comm: MPI.Comm, ranks_per_node: int | None = None) -> Nodes:
    """The nodes of a communicator: the ranks that share memory.

    Collective: yes.

    Args: ranks_per_node: this many consecutive ranks are taken for a node, also where more of them share memory.
    Raises: RunError on every rank where such a group does not share memory.
    """
    machine = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    first = machine.allreduce(comm.rank, op=MPI.MIN)
    group = first if ranks_per_node is None else comm.rank // ranks_per_node
    everyone = np.empty((comm.size, 2), np.int64)
    comm.Allgather(np.array([first, group], np.int64), everyone)
    for one in np.unique(everyone[:, 1]):
        ranks = np.flatnonzero(everyone[:, 1] == one)
        if len(np.unique(everyone[ranks, 0])) > 1:
            raise RunError(f"ranks {ranks[0]} to {ranks[-1]} do not share memory: they are no node")
    _, lowest, number = np.unique(everyone[:, 1], return_index=True, return_inverse=True)
    of_rank = np.argsort(np.argsort(lowest))[number]
    near: Any = machine.Split(int(of_rank[comm.rank]), comm.rank)
    machine.Free()
    return Nodes(of_rank.astype(np.int64), comm.rank, near)


def choose_nodes(
    comm: MPI.Comm, exchange: str, ranks_per_node: int | None, refused: str | None, num_halos: int = 0
) -> tuple[Nodes | None, np.ndarray, str | None]:
    """The nodes by which to exchange, or None: by plain messages.

    Collective: yes.

    Args:
        exchange: "flat", "node", or "auto": by nodes where there are two or more, each of two or more ranks, and room
            for the rows that these share.
        ranks_per_node: see `find_nodes`.
        refused: why this run cannot exchange by nodes, if so.
        num_halos: source and target halos of this rank.

    Returns:
        The nodes or None; bool [P], which ranks are on other nodes; and a line that says what was chosen and why, None
        where there was no choice.
    """
    far = np.zeros(comm.size, bool)
    if comm.size == 1:
        return None, far, None
    try:
        with raise_together(comm):
            nodes = find_nodes(comm, ranks_per_node)
    except DistGNNError as error:
        return None, far, f"exchange: plain messages: {error}"
    far = nodes.of_rank != nodes.here
    sizes = np.bincount(nodes.of_rank)
    if exchange == "flat" or (exchange == "auto" and (len(sizes) < 2 or sizes.min() < 2)):
        nodes.comm.Free()
        return None, far, None
    reason = refused or ("no node has two ranks" if sizes.max() < 2 else None) or _no_windows(comm, nodes)
    if exchange == "auto" and not reason:
        needed = SHARES * ROW_BYTES * nodes.comm.allreduce(num_halos)
        largest = comm.allreduce(0 if has_window_room(needed) else needed, op=MPI.MAX)
        if largest:
            reason = f"{FOLDER} has no room for some {human_bytes(largest)} of rows that ranks share"
    if reason:
        nodes.comm.Free()
        return None, far, f"exchange: plain messages: {reason}"
    ranks = str(sizes[0]) if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
    return nodes, far, f"exchange: by {len(sizes)} node{'s' if len(sizes) > 1 else ''} of {ranks} ranks"


def _no_windows(comm: MPI.Comm, nodes: Nodes) -> str | None:
    """Why the MPI library gives no shared memory, if it gives none. Collective: yes."""
    try:
        with raise_together(comm):
            MPI.Win.Allocate_shared(TRIED_BYTES, 1, comm=nodes.comm).Free()
    except (DistGNNError, MPI.Exception) as error:
        return f"the MPI library gives no shared memory ({str(error).splitlines()[0]})"
    return None
