"""Does a run exchange by nodes? What was asked for, what the ranks' places allow, and what is said about it."""

import numpy as np
from mpi4py import MPI

from distgnn.comm.agree import raise_together
from distgnn.comm.nodes.groups import Nodes, find_nodes
from distgnn.errors import DistGNNError
from distgnn.system.shared_memory import FOLDER, has_window_room
from distgnn.system.units import human_bytes

TRIED_BYTES = 4096
ROW_BYTES = 1024  # of a layer of 256 columns
SHARES = 6  # of a halo: its own row and its place in the union, and as target the other way, in two slots each


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
        reason = _no_room(comm, nodes, num_halos)
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


def _no_room(comm: MPI.Comm, nodes: Nodes, num_halos: int) -> str | None:
    """Say so where a machine has too little room for the rows that its ranks would share. Collective: yes."""
    needed = SHARES * ROW_BYTES * nodes.comm.allreduce(num_halos)
    largest = comm.allreduce(0 if has_window_room(needed) else needed, op=MPI.MAX)
    return f"{FOLDER} has no room for some {human_bytes(largest)} of rows that ranks share" if largest else None
