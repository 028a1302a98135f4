"""A rank that leaves: by `sys.exit`, `return` or the end of its script, while others wait for it or not.

    graph.comm                  counts this rank's collective calls, and exchanges (`WatchedComm`)
    a rank that ends            sends its count to all others, and waits until all have left
    a rank that waits in MPI    once it is in a call that a rank which has left never made, it sends that rank a word
    the rank that has left      says so in one line, and ends the job, with exit code 1

Nobody is counted as waiting who computes. A rank that works alone for hours after the others' end is waited for.
"""

import atexit
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
from mpi4py import MPI

from distgnn.comm.ending.alike import Alike, Calls, check_kind, difference, line_of_rows
from distgnn.errors import RunError
from distgnn.system.jobs import own_rank
from distgnn.system.jobs.doing import line_of, waiting, waits
from distgnn.system.jobs.keeper import ENDS, JOINED, OWN_CODE
from distgnn.system.jobs.own_rank import abort_job
from distgnn.system.jobs.rank_log import note
from distgnn.system.output import ERROR, say

senders: WeakSet[Any] = WeakSet()  # transports of this process: what they send must have left before it may
LOOK_SECONDS = 0.5
STILL_SECONDS = 1.5  # a message that has left its sender arrives within that time
SPEAK_SECONDS = 25.0  # for the rank that has left to end the job with its exit code
LEFT, STUCK, LATEST = 1, 2, 3  # tags
COUNTED = (
    *("Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv", "Alltoall"),
    *("Alltoallv", "Reduce", "Allreduce", "Scan", "Exscan", "Split", "Split_type", "barrier", "bcast", "gather"),
    *("scatter", "allgather", "alltoall", "reduce", "allreduce", "scan", "exscan"),
)
SAME_LENGTH = ("Bcast", "Reduce", "Allreduce", "Scan", "Exscan", "Allgather", "Alltoall")
STARTED = ("Ibarrier", "Ibcast", "Iallreduce", "Iallgather", "Igather", "Ireduce")  # they do not wait


class WatchedComm(MPI.Intracomm):
    """A communicator over all ranks of a graph that counts collective calls; its duplicates count together with it."""

    crew: "Crew | None" = None

    def Dup(self, info: Any = None) -> "WatchedComm":
        """A communicator of the same ranks. Collective: yes."""
        with self.calling("Dup"):
            made = super().Dup() if info is None else super().Dup(info)
        made.crew = self.crew
        return made

    @contextmanager
    def calling(self, name: str, waits: bool = True, length: str = "") -> Iterator[None]:
        """The block is a call that every rank makes, with arrays of one length."""
        crew = self.crew
        kind = name if crew is None else name + length + line_of_rows()
        if crew is not None:
            crew.calls.begin(kind, waits)
        if not waits:
            yield
            return
        with waiting(name):
            # Calls of other threads have no order.
            if crew is not None and crew.channel is not None and threading.current_thread() is threading.main_thread():
                try:
                    check_kind(crew.channel, kind, crew.alike)
                except RunError:  # on every rank
                    crew.calls.forget()
                    raise
            yield


def _length(args: tuple[Any, ...]) -> str:
    """The length of the array that a call sends or receives."""
    for one in args[:2]:
        array = one[0] if isinstance(one, list | tuple) and one else one
        if isinstance(array, np.ndarray):
            return f" of {array.size} {array.dtype.str}"
    return ""


def _counted(name: str, waits: bool) -> Callable:
    plain_call, has_length = getattr(MPI.Intracomm, name), name in SAME_LENGTH

    def call(self: WatchedComm, *args: Any, **kwargs: Any) -> Any:
        with self.calling(name, waits, _length(args) if has_length else ""):
            found = plain_call(self, *args, **kwargs)
        return WatchedComm(found) if type(found) is MPI.Intracomm else found  # waits on some of the ranks say so, too

    call.__name__, call.__doc__ = name, plain_call.__doc__
    return call


for _name in (*COUNTED, *STARTED):
    setattr(WatchedComm, _name, _counted(_name, _name in COUNTED))


class Crew:
    """The ranks that load graphs together, as one of them sees them.

    Args: comm: over all of them. Collective: the constructor.

    Attributes: calls: collective calls and exchanges that this rank has begun; alike: what they are about to use.
    """

    def __init__(self, comm: MPI.Comm):
        self.calls: Calls = Calls()
        self.alike: Alike = Alike()
        self.channel: MPI.Comm | None = None
        self._told = -1  # calls at which this rank told the first one that it waits
        self._latest: dict[int, list[tuple[int, str]]] = {}  # calls of ranks that wait
        self._left: dict[int, tuple[int, str]] = {}  # calls that a rank has made in all, and where it left
        self._sending: list[MPI.Request] = []
        self._members = comm.group.Translate_ranks(None, MPI.COMM_WORLD.group)  # in the world
        self._over = threading.Event()
        self.place = ""  # where this rank has left
        self._main = threading.main_thread().ident or 0
        self._thread = threading.Thread(target=self._watch, name="leaving", daemon=True)
        if MPI.Query_thread() == MPI.THREAD_MULTIPLE:
            self._thread.start()
        with waiting("load"):
            channel = comm.Dup()
        self.calls.begin("load")
        self.channel = channel
        note.set(stage=JOINED, doing=self._calls())

    # While this rank works

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            if not note.phase:
                note.set(doing=f"{self._calls()} at {line_of(self._main, users=True) or 'an unknown place'}")
            if self.channel is None:
                said = (_probed(MPI.COMM_WORLD, own_rank.UNJOINED, rank) for rank in self._members)
                alone = [rank for rank in said if rank is not None]
                if alone and self._stands_still():
                    end(alone[0], f"{Path(sys.argv[0]).name}, before it loaded a graph", self._waits_in())
                continue
            self._hear()
            behind = [rank for rank, (calls, _) in self._left.items() if calls < self.calls.number]
            if behind and self._stands_still():
                self._send(STUCK, [min(behind)], self._waits_in())
                if not self._over.wait(SPEAK_SECONDS) and self._stands_still():
                    end(min(behind), self._left[min(behind)][1], self._waits_in())
            # Where ranks wait for each other in calls of other kinds, end the job.
            if self._stands_still() and self._told != self.calls.number:
                self._told = self.calls.number
                if self.channel.rank:
                    self._send(LATEST, [0], self.calls.recent())
            for rank, theirs in self._latest.items():
                kinds = self.calls.other_than(theirs)
                if kinds:
                    line = f"; rank 0 waits in {self._waits_in()}"
                    say(difference({0: kinds[0], rank: kinds[1]}) + line, ERROR)
                    abort_job(OWN_CODE)

    def _calls(self) -> str:
        return f"{Path(sys.argv[0]).name or 'a module'}, after {self.calls.number} collective calls,"

    def _stands_still(self) -> bool:
        _, since = waits.get(self._main, ("", float("inf")))
        return time.monotonic() - since > STILL_SECONDS

    def _waits_in(self) -> str:
        name = waits.get(self._main, ("", 0.0))[0]
        return f"{name} at {line_of(self._main, users=True) or note.phase or 'the end'}"

    def _hear(self) -> None:
        assert self.channel is not None
        while (rank := _probed(self.channel, LEFT)) is not None:
            self._left[rank] = self.channel.recv(source=rank, tag=LEFT)
        while (rank := _probed(self.channel, LATEST)) is not None:
            self._latest[rank] = self.channel.recv(source=rank, tag=LATEST)

    def _send(self, tag: int, ranks: list[int], content: Any) -> None:
        assert self.channel is not None
        self._sending = [one for one in self._sending if not one.Test()]
        self._sending += [self.channel.isend(content, rank, tag) for rank in ranks]

    # When it ends

    def announce(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self.channel is not None:
            self.place = note.phase or self._calls()
            everyone = [rank for rank in range(self.channel.size) if rank != self.channel.rank]
            self._send(LEFT, everyone, (self.calls.number, self.place))

    def all_have_left(self) -> bool:
        """Whether nobody is left. Where one waits for this rank, it says so and ends the job."""
        if self.channel is None:
            return True
        self._hear()
        stuck = _probed(self.channel, STUCK)
        if stuck is not None:
            end(self.channel.rank, self.place, self.channel.recv(source=stuck, tag=STUCK))
        return len(self._left) == self.channel.size - 1 and MPI.Request.Testall(self._sending)


_crews: list[Crew] = []  # of this process


def watched(comm: MPI.Comm) -> MPI.Comm:
    """A communicator of the same ranks whose calls are counted, so that a rank that leaves is noticed.

    Collective: yes.
    """
    if comm.size == 1 or isinstance(comm, WatchedComm) or not isinstance(comm, MPI.Comm):  # an extra stands around it
        return comm
    for crew in _crews:
        if crew.channel is not None and MPI.Comm.Compare(crew.channel, comm) in (MPI.IDENT, MPI.CONGRUENT):
            break
    else:
        if not _crews:
            own_rank.last_acts.append(_leave)
            keyval = MPI.Comm.Create_keyval(delete_fn=_finalized)
            MPI.COMM_SELF.Set_attr(keyval, os.getpid())
        crew = Crew(comm)
        _crews.append(crew)
    found = WatchedComm(comm)
    found.crew = crew
    return found


def _finalized(_comm: MPI.Comm, _keyval: int, pid: int) -> None:
    """The program calls MPI_Finalize itself."""
    if os.getpid() == pid and not own_rank.over():
        _leave()
        own_rank.say_farewell(MPI)
    if os.getpid() == pid:
        note.set(stage=ENDS)


def _leave() -> None:
    """Leave, and wait until all have."""
    for crew in _crews:
        crew.announce()
    pause = 0.0002
    while not all([crew.all_have_left() for crew in _crews]) or not all(one.has_sent() for one in list(senders)):
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


@cache
def end_quickly() -> None:
    """When Python ends, leave objects to the system.

    Notes: Python would look for garbage among some 300,000 objects several times: 0.75 s of a core for each rank, of
        3.7 s for all of a short run. Files that a program leaves open are still flushed and closed unless they are part
        of a cycle.
    """
    atexit.register(gc.freeze)


def end(rank: int, place: str, where: str) -> None:
    """The line on a rank that has left, and the end of the job."""
    say(f"rank {rank} left in {place.rstrip(',')}, the others wait in {where}", ERROR)
    abort_job(OWN_CODE)


def _probed(comm: MPI.Comm, tag: int, rank: int = MPI.ANY_SOURCE) -> int | None:
    """The rank that has sent a message of this kind."""
    status = MPI.Status()
    return status.Get_source() if comm.Iprobe(rank, tag, status) else None
