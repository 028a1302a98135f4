"""The transport: non-blocking messages with a call number as tag, counted and timed. It only moves bytes.

Also what an epoch's parts cost one rank (`Counters`), and memory of messages and held rows in pages of their own: large
ones, which can be given back one by one (`leave_pages`).
"""

import mmap
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from mpi4py import MPI

from distgnn.comm.ending.leaving import senders
from distgnn.comm.sums import are_complete, byte_pieces, wait_for_all
from distgnn.errors import RunError
from distgnn.system.jobs import doing
from distgnn.system.jobs.own_rank import over

HUGE_FROM = 4 << 20  # bytes; from here on the kernel is asked for huge pages, as numpy does for its own arrays


def page_aligned_zeros(shape: tuple[int, ...], dtype: np.typing.DTypeLike) -> np.ndarray:
    """Zeros in an anonymous mapping, outside of malloc's heap; unmapped when the array is freed."""
    num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if num_bytes == 0:
        return np.zeros(shape, dtype)
    pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if num_bytes >= HUGE_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8, num_bytes).view(dtype).reshape(shape)


def leave_pages(rows: np.ndarray, piece: slice) -> None:
    """Give the pages of some rows of a `page_aligned_zeros` back to the system: what is wholly in them becomes 0."""
    mapped: object = rows
    while isinstance(mapped, np.ndarray):
        mapped = mapped.base
    row_bytes = rows.nbytes // max(len(rows), 1)
    first, end = -(-piece.start * row_bytes // mmap.PAGESIZE), piece.stop * row_bytes // mmap.PAGESIZE
    if isinstance(mapped, memoryview) and isinstance(mapped.obj, mmap.mmap) and first < end:
        mapped.obj.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (end - first) * mmap.PAGESIZE)


class MessageMemory:
    """Rows of the exact messages of all exchanges of a graph: one array per role, as large as its largest use.

    Both directions and all widths use it in turn. An exchange waits for `sending` before it asks for rows that MPI
    may still read.

    Attributes: sending: by verb, requests of messages that leave.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self.sending: dict[str, list[MPI.Request]] = {"broadcast": [], "reduce": []}

    def rows(self, role: str, num_rows: int, like: np.ndarray) -> np.ndarray:
        """Rows [num_rows, D] with any content, with the width and dtype of `like` [*, D]."""
        num_bytes = num_rows * like.shape[1] * like.itemsize
        if num_bytes > len(self._arrays.get(role, ())):
            self.give_back(role)  # first, so that never both are there
            self._arrays[role] = page_aligned_zeros((num_bytes,), np.uint8)
        if num_bytes == 0:
            return np.empty((num_rows, like.shape[1]), like.dtype)
        return self._arrays[role][:num_bytes].view(like.dtype).reshape(num_rows, like.shape[1])

    def give_back(self, *roles: str) -> None:
        for role in roles:
            self._arrays.pop(role, None)

    def blocks(self) -> list[tuple[str, object]]:
        """What it holds, by name, for the ledger."""
        names = {"sources": "halo rows", "targets": "halo rows"}
        return [(names.get(role, "messages"), array) for role, array in list(self._arrays.items())]

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())


KINDS = 64  # an exchange of another kind, or of rows of another width, never takes a message for its own
LARGEST_MESSAGE = 2**30  # bytes; MPI counts in 32-bit integers, and some networks do so whatever the library offers


@dataclass
class Counters:
    """Running totals since the start of the process, of one rank.

    `trace`, where it is set, hears of every timed block: it is called with (name, start, end), seconds of
    `time.perf_counter`.
    """

    sent_bytes: int = 0
    sent_messages: int = 0
    wait_seconds: float = 0.0
    pack_seconds: float = 0.0
    aggregate_seconds: float = 0.0
    all_reduce_seconds: float = 0.0

    def __post_init__(self) -> None:  # no field: totals are copied and subtracted, this is not
        self.trace: Callable[[str, float, float], None] | None = None

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Add the time of a block to the total `name`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            ended = time.perf_counter()
            setattr(self, name, getattr(self, name) + ended - started)
            if self.trace is not None:
                self.trace(name.removesuffix("_seconds"), started, ended)

    def copy(self) -> "Counters":
        return replace(self)

    def since(self, before: "Counters") -> dict[str, float]:
        """What was added since the copy `before` was made."""
        return {name: value - getattr(before, name) for name, value in asdict(self).items()}


class Transport:
    """Sends and receives arrays for every exchange of one rank, and counts what it cost.

    All exchanges of a graph share one transport, so that call numbers (the tags) run through all of them.

    Args:
        comm: communicator, one rank per part. It is duplicated: the caller's own messages cannot interfere.
        debug: agree on (call number, operation, width) before each exchange, and name the ranks that differ.

    Collective: the constructor and `begin` in debug mode.

    Attributes:
        waits: seconds waited for each exchange since `start_step`, by "number operation width".
        sent_to: int64 [ranks], bytes sent to each rank since `start_step`.
        messages: memory of exact messages, of all exchanges.
        largest_message: bytes; longer rows travel in pieces of this size.
        suppressed: nothing is sent or received, and what would have been received keeps its bytes (`distgnn bench`).
        in_pieces: rows travel piece by piece; the same on all ranks (`--offload`). column_piece: how many of their
            columns at a time, 0: all, for sums without a gradient.
        num_sums: sums of gradients over ranks, in a loop of the user's own.
        models: of a loop of the user's own, those that were called with the graph, as weak references.
        has_global_loss: a loss was made a number of the whole graph, or a rank's share of one (`ops/own_loop.py`).
    """

    def __init__(self, comm: MPI.Comm, debug: bool = False):
        self._sending: list[MPI.Request] = []
        self.comm: Any = comm.Dup()
        self.rank: int = comm.rank
        self.num_ranks: int = comm.size
        self.crew: Any = getattr(self.comm, "crew", None)  # who notices a rank that leaves (ending/leaving.py)
        self.debug = debug
        self.num_calls: int = 0
        self.num_sums: int = 0
        self.models: list[Callable[[], Any]] = []
        self.counters: Counters = Counters()
        self.messages: MessageMemory = MessageMemory()
        self.largest_message = LARGEST_MESSAGE
        self.suppressed = self.has_global_loss = self.in_pieces = False
        self.column_piece = 0
        self.waits: dict[str, float] = {}
        self.sent_to: np.ndarray = np.zeros(comm.size, np.int64)
        self._names: dict[int, str] = {}
        self._met: set[str] = set()  # kinds of exchanges that ranks have compared once
        self._num_tags = int(MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) or 0) + 1
        senders.add(self)

    def start_step(self) -> None:
        """A training step begins: count waiting and bytes anew, and number its exchanges from 0."""
        self.waits, self._names = {}, {}
        self.sent_to = np.zeros_like(self.sent_to)

    def begin(self, operation: str, width: int) -> int:
        """Number the next exchange and return its tag. Every rank runs the same sequence of exchanges."""
        self._sending = [request for request in self._sending if request]
        number = self.num_calls
        self.num_calls += 1
        if self.debug:
            calls = self.comm.allgather((number, operation, width))
            odd = [f"rank {rank}: {call}" for rank, call in enumerate(calls) if call != calls[0]]
            if odd:
                raise RunError(
                    f"ranks differ in their exchanges: rank 0 is at (call, operation, width) {calls[0]}, "
                    f"{'; '.join(odd)}: every rank must run the same layers in the same order"
                )
        if self.crew is not None:
            kind = f"an exchange of rows ({operation}, {width} wide)"
            if kind in self._met:
                self.crew.calls.begin(kind)
            else:  # ranks whose models differ are told before rows of other widths wait for each other
                self._met.add(kind)
                with self.comm.calling(kind):
                    pass
        tag = number % (self._num_tags // KINDS) * KINDS + zlib.crc32(f"{operation} {width}".encode()) % KINDS
        self._names[tag] = f"{len(self._names)} {operation} {width}"
        return tag

    def send(self, rows: np.ndarray, rank: int, tag: int) -> list[MPI.Request]:
        """Start sending contiguous `rows`, which MPI reads until the requests are complete."""
        if self.suppressed:
            return []
        pieces = list(byte_pieces(rows, self.largest_message))
        if rank != self.rank:  # what a rank sends itself crosses nothing
            num_bytes = sum(len(piece) for piece in pieces)
            self.counters.sent_bytes += num_bytes
            self.counters.sent_messages += len(pieces)
            self.sent_to[rank] += num_bytes
        requests = [self.comm.Isend([piece, MPI.BYTE], rank, tag) for piece in pieces]
        self._sending += requests
        return requests

    def receive(self, rows: np.ndarray, rank: int, tag: int) -> list[MPI.Request]:
        """Start receiving into contiguous `rows`, which MPI writes until the requests are complete."""
        if self.suppressed:
            return []
        return [self.comm.Irecv([piece, MPI.BYTE], rank, tag) for piece in byte_pieces(rows, self.largest_message)]

    def progress(self) -> None:
        """Let MPI move whatever is in flight: without a call into the library, most networks stand still."""
        if self.num_ranks > 1:
            self.comm.Iprobe()

    def wait(self, requests: list[MPI.Request], tag: int | None = None) -> None:
        """Wait until all requests are complete; the time counts as waiting, for the exchange with this tag."""
        if requests:
            with self.waiting(tag):
                wait_for_all(requests)

    @contextmanager
    def waiting(self, tag: int | None = None) -> Iterator[None]:
        """The time of a block counts as waiting, for the exchange with this tag."""
        before = self.counters.wait_seconds
        with self.counters.timing("wait_seconds"), doing.waiting("exchange"):
            yield
        name = None if tag is None else self._names.get(tag)
        if name is not None:
            self.waits[name] = self.waits.get(name, 0.0) + self.counters.wait_seconds - before

    def has_sent(self) -> bool:
        """Has every message of this rank been read?"""
        return MPI.Is_finalized() or are_complete(self._sending)

    def __del__(self) -> None:
        """Wait until every message of this rank was read: receivers read the rows of a sender until then."""
        if self._sending and not MPI.Is_finalized() and not over():
            wait_for_all(self._sending)


def all_moves() -> tuple[int, int]:
    """Exchanges and sums of gradients of this process so far, over all its graphs; less once a graph is gone."""
    living = list(senders)
    return sum(one.num_calls for one in living), sum(one.num_sums for one in living)
