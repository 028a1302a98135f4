"""A communicator of P ranks of which one is there: it answers every call at once, and notes the call and its time.

What other ranks would send is generated: the bytes that this rank itself sends in the same exchange, repeated. They
have the right width, wire format and magnitude, so kernels do the work that they would do. Sums over ranks leave this
rank's numbers as they are.
"""

import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from mpi4py import MPI

SMALL_BYTES = 64  # of an object that ranks agree on
MOST_TAGS = 512  # exchanges whose rows are remembered


class Log:
    """Calls in the order they were made: (kind, details, entered, left), seconds of `time.perf_counter`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], float, float]] = []
        self.on = False
        self.num_started: int = 0
        self.num_channels: int = 0  # communicators
        self.sent: dict[int, np.ndarray] = {}  # what this rank sent last, by tag

    def note(self, kind: str, details: tuple[Any, ...], entered: float) -> None:
        """One call; it ends now."""
        if self.on:
            self.calls.append((kind, details, entered, time.perf_counter()))

    def start(self) -> int:
        self.num_started += 1
        return self.num_started - 1


class StandInRequest(MPI.Request):
    """A request that is complete; waiting for it is noted, and fills what it receives."""

    log: Log
    number: int
    done: bool
    receives: tuple[int, np.ndarray] | None

    @classmethod
    def of(cls, log: Log, receives: tuple[int, np.ndarray] | None = None) -> "StandInRequest":
        """A request of something started now; `receives`: tag and buffer of a receive."""
        request = cls()
        request.log, request.number = log, log.start()
        request.receives, request.done = receives, False
        return request

    @classmethod
    def Testall(cls, requests: Sequence[Any], statuses: Any = None) -> Literal[True]:
        """Note a call in which messages may move."""
        entered = time.perf_counter()
        if requests:
            requests[0].log.note("progress", (), entered)
        return True

    @classmethod
    def Waitall(cls, requests: Sequence[Any], statuses: Any = None) -> Literal[True]:
        """Note which were waited for, and fill their buffers."""
        entered = time.perf_counter()
        waiting = [one for one in requests if not one.done]
        for one in waiting:
            one.done = True
            if one.receives is not None:
                _fill(one.receives[1], one.log.sent.get(one.receives[0]))
        if waiting:
            waiting[0].log.note("wait", tuple(one.number for one in waiting), entered)
        return True


def _fill(buffer: np.ndarray, like: np.ndarray | None) -> None:
    if like is None or not len(like):
        return
    whole = len(buffer) // len(like) * len(like)
    if whole:
        buffer[:whole].reshape(-1, len(like))[:] = like
    buffer[whole:] = like[: len(buffer) - whole]


class StandIn:
    """In place of an `MPI.Comm`: what training calls of one.

    Args: answers: what `Alltoall` gives, one array for each call (bins of a delayed schedule).
    """

    def __init__(self, rank: int, size: int, answers: Sequence[np.ndarray] = (), log: Log | None = None):
        self.rank: int = rank
        self.size: int = size
        self.log: Log = log or Log()
        self._answers = list(answers)
        self._channel, self.log.num_channels = self.log.num_channels, self.log.num_channels + 1

    def Dup(self) -> "StandIn":
        copy = StandIn(self.rank, self.size, log=self.log)
        copy._answers = self._answers
        return copy

    def Split_type(self, kind: int, *_: Any) -> MPI.Intracomm:
        """The ranks of this machine: this one alone."""
        return MPI.COMM_SELF.Dup()

    def Free(self) -> None:
        """Nothing is held."""

    def Isend(self, message: Any, dest: int, tag: int = 0) -> StandInRequest:
        entered = time.perf_counter()
        rows, sent = message[0], self.log.sent
        sent.pop(tag, None)
        sent[tag] = rows  # for a while: messages of a delayed schedule are taken epochs later
        while len(sent) > MOST_TAGS:
            sent.pop(next(iter(sent)))
        return self._started("send", (tag, dest, rows.nbytes), entered)

    def Irecv(self, message: Any, source: int, tag: int = 0) -> StandInRequest:
        entered = time.perf_counter()
        return self._started("receive", (tag, source, message[0].nbytes), entered, (tag, message[0]))

    def Iprobe(self, *_: Any) -> bool:
        """Nothing waits to be received; messages may move."""
        self.log.note("progress", (), time.perf_counter())
        return False

    def Iallreduce(self, _: Any, values: np.ndarray, op: Any = None) -> StandInRequest:
        return self._started("sum", (self._channel, values.nbytes), time.perf_counter())

    def _started(self, kind: str, details: tuple[Any, ...], entered: float, receives: Any = None) -> StandInRequest:
        request = StandInRequest.of(self.log, receives)
        self.log.note(kind, details, entered)
        return request

    # Collectives that are waited for: what is gathered is as if every rank had the same, what is sent by a root is
    # this rank's own

    def Allreduce(self, values: Any, total: np.ndarray, op: Any = None) -> None:
        if isinstance(values, np.ndarray):
            np.copyto(total, values)
        self._agree(total.nbytes)

    def allreduce(self, value: Any, op: Any = MPI.SUM) -> Any:
        """The sum, as if every rank had the same; the extreme, as if no other rank had one."""
        self._agree()
        return value * self.size if op == MPI.SUM else value

    def allgather(self, value: Any) -> list[Any]:
        self._agree()
        return [value] * self.size

    def Allgather(self, mine: np.ndarray, everyone: np.ndarray) -> None:
        everyone[:] = mine
        self._agree(everyone.nbytes)

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        self._agree()
        return [value] * self.size if self.rank == root else None

    def bcast(self, value: Any, root: int = 0) -> Any:
        self._agree()
        return value

    def Bcast(self, values: Any, root: int = 0) -> None:
        self._agree()

    def Barrier(self) -> None:
        self._agree()

    def Alltoall(self, _: np.ndarray, theirs: np.ndarray) -> None:
        theirs[:] = self._answers.pop(0)

    def _agree(self, num_bytes: int = SMALL_BYTES) -> None:
        """A collective that is waited for."""
        entered = time.perf_counter()
        number = self.log.start()
        self.log.note("sum", (self._channel, num_bytes), entered)
        self.log.note("wait", (number,), entered)
