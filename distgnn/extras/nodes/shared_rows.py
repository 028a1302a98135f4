"""Rows that all ranks of a node read and write: an MPI shared-memory window with counters in place of messages.

Legend: R ranks of the node, n rows of one rank, D width.

    block of a rank     [ a cache line per counter | slot 0: rows [n, D] | slot 1: rows [n, D] ]

Use number u of the rows (1, 2, …) has slot u mod 2. A counter holds the number of the last use in which its rank came
so far, and only its own rank writes it. Two slots: who is ahead by one use writes where nobody reads any more.
"""

import atexit
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from mpi4py import MPI

from distgnn.comm.agree import raise_together
from distgnn.comm.transport import Transport
from distgnn.errors import RunError
from distgnn.system.shared_memory import FOLDER, room
from distgnn.system.units import human_bytes

PAGE, LINE = 4096, 64
BEGUN, WRITTEN, PASSED_ON = range(3)  # the rank began the use; its rows are there; what it received for others is there
READ = PASSED_ON  # of partial sums, which nobody passes on: the rank has read what it needs
COUNTERS = 3
SPINS = 64  # before the core is offered to other processes


class SharedRows:
    """Rows of one width and dtype of all ranks of a node, in two slots.

    Collective: the constructor, over the node.

    Args: comm: of the node; transport: moved while this rank waits; num_rows: n of this rank; like: [*, D] of the
        width and dtype.
    Notes: the memory is given back at the end of the program, before MPI ends (some networks refuse to end before):
        freeing a window is collective, and a rank drops a graph when it likes.
    """

    def __init__(self, comm: MPI.Intracomm, transport: Transport, num_rows: int, like: np.ndarray):
        self.transport = transport
        self.place: int = comm.rank
        self.use: int = 0
        counts = comm.allgather(num_rows)
        width, size = like.shape[1], like.shape[1] * like.itemsize
        blocks = [-(-(COUNTERS * LINE + 2 * count * size) // PAGE) * PAGE for count in counts]
        self.num_bytes: Any = blocks[comm.rank]
        with raise_together(comm):
            check_window_room(sum(blocks))
        self._window = MPI.Win.Allocate_shared(self.num_bytes, 1, comm=comm)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        atexit.register(_free, self._window)  # last made, first freed: in the same order on every rank
        self._counters, self._slots = [], []
        for member, count in enumerate(counts):
            memory: Any = self._window.Shared_query(member)[0]
            block = np.frombuffer(memory, np.uint8)
            self._counters.append(block[: COUNTERS * LINE].view(np.int64)[:: LINE // 8])
            rows = block[COUNTERS * LINE :][: 2 * count * size].view(like.dtype)
            self._slots.append(rows.reshape(2, count, width))
        # Its own rank touches the memory first: the pages are near its cores
        self._counters[self.place][:] = 0
        self._slots[self.place].view(np.uint8)[:] = 0
        self._window.Sync()
        comm.Barrier()
        self._window.Sync()

    def rows(self, member: int, use: int) -> np.ndarray:
        """The rows [n, D] of a rank of the node in a use."""
        return self._slots[member][use % 2]

    def mine(self, use: int) -> np.ndarray:
        return self.rows(self.place, use)

    def announce(self, counter: int, use: int) -> None:
        """This rank came so far: what it wrote before is seen by who sees the counter."""
        self._window.Sync()
        self._counters[self.place][counter] = use

    def reached(self, counter: int, members: Iterable[int], use: int) -> bool:
        """Have all of these ranks come so far? What they wrote before may then be read."""
        if any(self._counters[member][counter] < use for member in members):
            return False
        self._window.Sync()
        return True

    def wait(self, counter: int, members: Iterable[int], use: int, tag: int | None = None) -> None:
        """Wait until all of these ranks have come so far; MPI moves messages meanwhile."""
        members = list(members)
        if self.reached(counter, members, use):
            return
        spins = 0
        with self.transport.waiting(tag):
            while not self.reached(counter, members, use):
                self.transport.progress()
                spins += 1
                if spins > SPINS:
                    os.sched_yield()


def check_window_room(num_bytes: int) -> None:
    """Refuse to share bytes between ranks where there is no room: writing them would end in a bus error."""
    free = room("f_bavail")
    if free is not None and free < num_bytes:
        raise RunError(
            f"{FOLDER} has room for {human_bytes(free)}, and the ranks of a node would share {human_bytes(num_bytes)}: "
            "give the container more (docker run --shm-size=…), or leave --ranks-per-node out"
        )


def _free(window: MPI.Win) -> None:
    """Give a window back. Collective over the node."""
    if not MPI.Is_finalized():
        window.Unlock_all()
        window.Free()
