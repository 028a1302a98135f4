"""What every rank of a real job does in its epochs, noted while it trains: computation, messages, waits.

The ranks take turns on the cores: `at_once` of them compute at a time, each with a core (or several) to itself, and
ranks that wait for messages sleep. So a part's computation takes as long as it takes alone, on a machine with fewer
cores than the job has ranks. What passes inside a call of MPI is not counted: the network model says how long it takes.

    calls of MPI      noted by `RecordedComm` and `NotedRequest`, which stand around the real ones
    timed blocks      of a step (aggregate, pack) come as a trace's do; what is between them is dense
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from mpi4py import MPI

from distgnn.comm.ending.leaving import COUNTED
from distgnn.comm.transport import KINDS
from distgnn.config import Settings, num_threads
from distgnn.errors import InputError
from distgnn.extras.replay.player import Event, Recording
from distgnn.graph.loader import load
from distgnn.nn import model_for
from distgnn.system.units import peak_rss_bytes
from distgnn.train.run.trace import Trace
from distgnn.train.trainer import Trainer

TASKS = ("node", "regression")
NAMED = ("aggregate", "pack")
UNCOUNTED_EPOCHS = 2
SMALL_BYTES = 64  # of an object that ranks agree on
PAUSE_SECONDS = 0.0003  # times the number of ranks: between two looks of a rank that waits


def check_recordable(settings: Settings, num_parts: int) -> None:
    """Raise InputError for what is not recorded."""
    if settings.train.task not in TASKS:
        raise InputError(f"replay is of {' and '.join(TASKS)}: messages of task {settings.train.task} are not noted")
    if settings.train.verify_every or settings.train.inductive:
        raise InputError("replay takes neither verify_every nor --inductive: leave them out")
    if num_parts < 2:
        raise InputError("a single part sends nothing: distgnn bench measures it")


def record(
    folder: str,
    settings: Sequence[Settings],
    comm: Any = None,
    repeats: int = 3,
    at_once: int | None = None,
    epochs: int = 5,
) -> list[list[Recording]]:
    """Train some epochs with each of the settings in turn, and return what each rank did; on rank 0, elsewhere nothing.

    Whatever else the machine does meets all settings. Collective: yes, one rank per part, all on this machine.

    Args: repeats: turns of each, after the first one; at_once: ranks that compute at a time; None: all; epochs: at
        least so long is a turn, a whole number of cycles.
    """
    comm = comm or MPI.COMM_WORLD
    for one in settings:
        check_recordable(one, comm.size)
    turns = min(at_once or comm.size, comm.size)
    turn, cores = comm.rank % turns, sorted(os.sched_getaffinity(0))
    if turns * num_threads() <= len(cores):  # else the system may give one core to two ranks, and leave another idle
        os.sched_setaffinity(0, cores[turn * num_threads() : (turn + 1) * num_threads()])
    recorded = [_Recorded(folder, one, comm, Path(folder) / f"part-{turn}") for one in settings]
    for _ in range(repeats + 1):
        for job in recorded:
            job.train(job.cycle * -(-epochs // job.cycle))
    found = [job.recording() for job in recorded]
    os.sched_setaffinity(0, cores)
    return [comm.gather(one, root=0) or [] for one in found]


class _Recorded:
    """A job that trains and is recorded. Collective: everything. Args: turn: as of `_Log`."""

    def __init__(self, folder: str, settings: Settings, comm: Any, turn: Path):
        self._log = _Log(comm, turn)
        around: Any = RecordedComm(comm, self._log)
        options = settings.graph_options()
        self._graph = load(folder, settings.run.algorithm, around, say=None, plain_tensors=True, **options)
        torch.manual_seed(settings.train.seed)
        model = model_for(settings.model, self._graph, settings.train.task)
        self._trainer: Any = Trainer(model, self._graph, settings.train)
        self._trainer.trace = self._recorder = _Recorder(self._graph.transport, self._log)
        self.cycle: int = settings.algorithm.delay or 1
        # Until kernels are compiled, and a schedule does the same in every cycle
        late = settings.schedule.warmup_epochs + self.cycle if settings.algorithm.delay else 0
        self._epoch = UNCOUNTED_EPOCHS + late
        for epoch in range(self._epoch):
            self._trainer.train_epoch(epoch)

    def train(self, epochs: int) -> None:
        with self._log.on():
            for _ in range(epochs):
                self._recorder.begin()
                self._trainer.train_epoch(self._epoch)
                self._epoch += 1

    def recording(self) -> Recording:
        self._trainer.predict()  # an evaluation may take more memory than an epoch
        self._graph.drain()
        noted = self._recorder.epochs, self._recorder.sent_to
        return Recording(self._graph.rank, self.cycle, *noted, peak_rss_bytes())


class _Log:
    """Calls in the order they were made, (kind, details, entered, left) in seconds of `time.perf_counter`, and the
    core that this rank computes on. Args: turn: a folder; of the ranks that name it, one has a core at a time."""

    def __init__(self, comm: Any, turn: Path):
        self.calls: list[tuple[str, tuple[Any, ...], float, float]] = []
        self.num_started = self.num_channels = 0
        self._comm, self._turn, self._core, self._pause = comm, turn, -1, PAUSE_SECONDS * comm.size

    @contextmanager
    def on(self) -> Iterator[None]:
        """Note the calls of the block, in which a rank computes only while it has a core."""
        self._core = os.open(self._turn, os.O_RDONLY)
        fcntl.flock(self._core, fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(self._core)
            self._core = -1

    def note(self, kind: str, details: tuple[Any, ...], entered: float) -> None:
        """One call; it ends now."""
        if self._core >= 0:
            self.calls.append((kind, details, entered, time.perf_counter()))

    def start(self) -> int:
        self.num_started += 1
        return self.num_started - 1

    @contextmanager
    def without_core(self) -> Iterator[None]:
        """The block waits: another rank may compute meanwhile."""
        if self._core >= 0:
            fcntl.flock(self._core, fcntl.LOCK_UN)
        yield
        if self._core >= 0:
            fcntl.flock(self._core, fcntl.LOCK_EX)

    def wait(self, requests: Sequence[MPI.Request]) -> None:
        """Until they are complete, asleep."""
        pause = self._pause / 16
        while not MPI.Request.Testall(requests):
            time.sleep(pause)
            pause = min(2 * pause, self._pause)

    def together(self, call: Callable, channel: int, args: tuple, words: dict[str, Any]) -> Any:
        """A collective call that waits: all ranks meet before it, asleep."""
        entered, number = time.perf_counter(), self.start()
        with self.without_core():
            self.wait([self._comm.Ibarrier()])
            found = call(*args, **words)
        arrays = [one.nbytes for one in args if isinstance(one, np.ndarray)]
        self.note("sum", (channel, max(arrays, default=SMALL_BYTES)), entered)
        self.note("wait", (number,), entered)
        return found


class NotedRequest(MPI.Request):
    """A request whose waits are noted."""

    log: _Log
    number: int
    done: bool

    @classmethod
    def of(cls, request: MPI.Request, log: _Log) -> "NotedRequest":
        found = cls(request)
        found.log, found.number, found.done = log, log.start(), False
        return found

    @classmethod
    def Testall(cls, requests: Sequence[Any], statuses: Any = None) -> bool:
        entered = time.perf_counter()
        complete = MPI.Request.Testall(requests)
        if requests:
            requests[0].log.note("progress", (), entered)
        return bool(complete)

    @classmethod
    def Waitall(cls, requests: Sequence[Any], statuses: Any = None) -> Literal[True]:
        entered = time.perf_counter()
        waiting = [one for one in requests if not one.done]
        if waiting:
            log = waiting[0].log
            with log.without_core():
                log.wait(waiting)
            log.note("wait", tuple(one.number for one in waiting), entered)
        for one in waiting:
            one.done = True
        return True


class RecordedComm:
    """In place of a communicator: hands every call on, and notes those that send, sum or wait."""

    def __init__(self, comm: Any, log: _Log):
        self._comm, self._log = comm, log
        self._channel, log.num_channels = log.num_channels, log.num_channels + 1

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._comm, name)
        if name not in COUNTED or name.startswith("Split"):
            return found
        return lambda *args, **words: self._log.together(found, self._channel, args, words)

    def Dup(self) -> "RecordedComm":
        return RecordedComm(self._comm.Dup(), self._log)

    def Isend(self, message: Any, dest: int, tag: int = 0) -> NotedRequest:
        return self._started("send", (tag, dest, message[0].nbytes), self._comm.Isend, message, dest, tag)

    def Irecv(self, message: Any, source: int, tag: int = 0) -> NotedRequest:
        return self._started("receive", (tag, source, message[0].nbytes), self._comm.Irecv, message, source, tag)

    def Iallreduce(self, mine: Any, values: np.ndarray, op: Any = MPI.SUM) -> NotedRequest:
        return self._started("sum", (self._channel, values.nbytes), self._comm.Iallreduce, mine, values, op)

    def Iprobe(self, *args: Any) -> bool:
        entered = time.perf_counter()
        found = self._comm.Iprobe(*args)
        self._log.note("progress", (), entered)
        return bool(found)

    def _started(self, kind: str, details: tuple[Any, ...], call: Callable, *args: Any) -> NotedRequest:
        entered = time.perf_counter()
        request = NotedRequest.of(call(*args), self._log)
        self._log.note(kind, details, entered)
        return request


class _Recorder(Trace):
    """Stands where the trainer keeps its trace: timed blocks come here, and every step when it ends."""

    def __init__(self, transport: Any, log: _Log):
        super().__init__(transport.counters, transport.rank)
        self._transport, self._log = transport, log
        self.epochs: list[list[Event]] = []
        self.sent_to: list[list[int]] = []
        self._starts: list[int] = []  # of each epoch: what had been started before

    def begin(self) -> None:
        """The next step begins: forget what came before it."""
        self._log.calls.clear()
        self._blocks.clear()
        self._first_call = self._transport.num_calls
        self._starts.append(self._log.num_started)

    def add_step(self, epoch: int, started: float, ended: float) -> None:
        """One training step is over: keep its events."""
        if not self._starts:
            return
        events: list[Event] = []
        blocks = sorted((block for block in self._blocks if block[0] in NAMED), key=lambda block: block[1])
        free = started
        for kind, details, entered, left in self._log.calls:
            if kind in ("send", "receive"):
                details = (details[0] // KINDS - self._first_call, *details[1:])  # number, rank, bytes
            elif kind == "wait":
                details = ([self._age(number) for number in details],)
            events += [*_compute(blocks, free, entered), (kind, *details)]
            free = max(left, free)
        self.epochs.append(events + _compute(blocks, free, ended))
        self.sent_to.append([int(count) for count in self._transport.sent_to])

    def _age(self, number: int) -> list[int]:
        """How many epochs ago a thing was started, and its place there; -1 where that was not recorded."""
        place = int(np.searchsorted(self._starts, number, side="right")) - 1
        return [-1, 0] if place < 0 else [len(self._starts) - 1 - place, number - self._starts[place]]


def _compute(blocks: list[tuple[str, float, float]], first: float, last: float) -> list[Event]:
    """What was computed between two times, by name."""
    events: list[Event] = []
    while blocks and blocks[0][2] <= first:
        blocks.pop(0)
    free = first
    for name, start, end in blocks:
        if start >= last:
            break
        if start > free:
            events.append(("compute", "dense", start - free))
        events.append(("compute", name, min(end, last) - max(start, free)))
        free = min(end, last)
    return [*events, ("compute", "dense", last - free)] if last > free else events
