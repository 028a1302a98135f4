"""Which ranks stand on which node, and who of a node receives and sends for the others.

Legend: P ranks. A node is R consecutive ranks; the last one may have fewer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

from distgnn.comm.agree import raise_together
from distgnn.errors import RunError

TRIED_BYTES = 4096


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
        return int(self.of_rank[-1]) + 1

    @property
    def near(self) -> list[int]:
        """The ranks of this node, ascending, this one among them; `comm` numbers them in this order."""
        return self.members(self.here)

    def is_far(self, rank: int) -> bool:
        return bool(self.of_rank[rank] != self.here)

    def members(self, node: int) -> list[int]:
        return [int(rank) for rank in np.flatnonzero(self.of_rank == node)]

    def leader(self, owner: int, node: int) -> int:
        """The rank of a node that receives an owner's rows for all of it, and sends the node's sums to that owner.

        In turn, so that the ranks of a node share the work.
        """
        members = self.members(node)
        return members[(owner + self.shift) % len(members)]


def find_nodes(comm: MPI.Comm, ranks_per_node: int) -> Nodes:
    """The nodes of a communicator.

    Collective: yes.

    Raises: RunError on every rank where the ranks of a node do not share memory.
    """
    of_rank = np.arange(comm.size, dtype=np.int64) // ranks_per_node
    machine: Any = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    near: Any = comm.Split(int(of_rank[comm.rank]), comm.rank)
    first = machine.allreduce(comm.rank, op=MPI.MIN)
    machine.Free()
    nodes = Nodes(of_rank, comm.rank, near)
    advice = "leave --ranks-per-node out"
    with raise_together(comm):
        if len(set(near.allgather(first))) > 1:
            raise RunError(f"ranks {nodes.near[0]} to {nodes.near[-1]} are no node, for they share no memory: {advice}")
        try:
            MPI.Win.Allocate_shared(TRIED_BYTES, 1, comm=near).Free()
        except MPI.Exception as error:
            reason = str(error).splitlines()[0]
            raise RunError(f"the MPI library gives no shared memory ({reason}): {advice}") from None
    return nodes
