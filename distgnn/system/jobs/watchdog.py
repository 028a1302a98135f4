"""The watchdog: a thread per rank that ends a job in which nothing moves any more, and says which rank is to blame.

Each rank's thread writes now and then what its rank is doing (phase, where in the program, whether it waits for
others) into a folder, that of the run. When a phase lasts longer than the limit, it reads what all others wrote, twice:
the one that does not wait, or does not answer, is the one that everybody waits for. A job that moved in between goes
on. Of a training loop that is not the trainer's nobody tells the phase: `distgnn/comm/ending/loop_watch.py`.
"""

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from distgnn.system.jobs.rank_log import RankLog
from distgnn.system.output import plain

HUNG = 124  # exit code, as of timeout(1)
# Files in whose functions a rank stands only while it waits for others.
WAITING_IN = tuple(
    os.path.join("distgnn", *place)
    for place in (("comm", ""), ("ops", "sums.py"), ("train", "run", "records.py"), ("train", "checkpoint", "state.py"))
)
# Files in whose functions a rank stands only while a kernel is compiled, by itself or by a process it waits for, or
# while a module is imported, which takes its time on a shared disk.
COMPILING_IN = (os.path.join("kernels", "runtime", "jit.py"), os.path.join("numba", "core", ""), "<frozen importlib")
COMPILE_SECONDS = 900.0  # of a phase at most
ABORT_SECONDS = 5.0


class Watchdog:
    """Watches the phases of one rank.

    Args:
        comm: communicator of the run; log: of this rank; seconds: the longest a phase may last (0: no limit).

    Notes: a rank that hangs inside the interpreter's lock, or is stopped, cannot answer; the others say so. Time in
        which this process did not run (stopped, a sleeping machine) does not count, nor does compiling; without a run
        folder a rank knows both of itself only. On one rank nothing is watched: there is nobody who waits.
    """

    option = "--timeout"  # who sets the limit: said with it

    def __init__(self, comm: Any, log: RankLog, seconds: float):
        self.comm, self.log, self.seconds = comm, log, seconds
        self.rank, self.num_ranks = comm.rank, comm.size
        self.beat_seconds = min(max(seconds / 8, 0.2), 15.0)
        self._phase, self._since, self._beats = "start", time.monotonic(), 0
        self._excused = self._compiled = 0.0  # seconds of this phase that do not count; those of them for compiling
        self._main = threading.get_ident()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def phase(self) -> str:
        """What the rank is doing."""
        return self._phase

    @phase.setter
    def phase(self, name: str) -> None:
        self._phase, self._since, self._excused, self._compiled = name, time.monotonic(), 0.0, 0.0

    @contextmanager
    def running(self) -> Iterator[Any]:
        """Watch while entered."""
        self._main, self.phase = threading.get_ident(), self._phase
        if self.seconds > 0 and self.num_ranks > 1 and self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
            self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            if self._thread is not None:
                self._thread.join()
                self._thread = None
                self._leave()

    def _watch(self) -> None:
        # Lower ranks speak first: one line, not one per rank.
        self._tell()
        patience = self.seconds + min(self.rank, 10) * 3 * self.beat_seconds
        while not self._pause(self.beat_seconds):
            self._look()
            self._tell()
            if self._age() > patience:
                text = self._hang()
                if text is not None:
                    self._end_the_job(text)
                    return

    def _look(self) -> None:
        """See whether the rank has gone on, where nobody sets the phase."""

    def _leave(self) -> None:
        """The watch is over."""
        self.log.close()

    def _pause(self, seconds: float) -> bool:
        """Wait, and see how much of the time does not count; whether the watch is over."""
        began = time.monotonic()
        over = self._over.wait(seconds)
        took = time.monotonic() - began
        if took > seconds + 2 * self.beat_seconds:  # this process was not running
            self._excused += took - seconds
        elif self._compiled < COMPILE_SECONDS and _compiles():
            self._excused += took
            self._compiled += took
        return over

    def _age(self) -> float:
        """Seconds of the phase that count."""
        return max(time.monotonic() - self._since - self._excused, 0.0)

    def _tell(self) -> None:
        self._beats += 1
        place, waits = self._place()
        status = {"beat": self._beats, "phase": self._phase, "seconds": round(self._age(), 1)}
        status |= {"waits": waits, "place": place}
        self.log.set_status(json.dumps(status))

    def _place(self) -> tuple[str, bool]:
        """Innermost line of the rank's program, and whether it waits for others there."""
        frame = _frames().get(self._main)
        if frame is None:
            return "nowhere", False
        waits = any(part in frame.f_code.co_filename for part in WAITING_IN)
        while waits and frame.f_back and any(part in frame.f_code.co_filename for part in WAITING_IN):
            frame = frame.f_back
        return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}", waits

    def _hang(self) -> str | None:
        """What to say of a job in which nothing moves; None where a second look finds that it does."""
        since, before = self._since, self._statuses()
        self._tell()
        if self._pause(2.5 * self.beat_seconds):
            return None
        self._look()
        self._tell()
        after = self._statuses()
        if self._since != since or self._age() < self.seconds or self._goes_on(before, after):
            return None
        return f"nothing moved for {self.seconds:g} s ({self.option}): {self._blame(before, after)}"

    def _statuses(self) -> list[str | None]:
        return [self.log.status_of(rank) for rank in range(self.num_ranks)]

    def _goes_on(self, before: list[str | None], after: list[str | None]) -> bool:
        """Whether every rank answers, and one has not used up its time yet: it was stopped, or compiled."""
        answered = all(text is not None and text != then for then, text in zip(before, after, strict=True))
        return answered and min(map(_seconds, after)) < self.seconds

    def _end_the_job(self, text: str) -> None:
        from mpi4py import MPI

        self.log.write(text)
        print(f"distgnn: error: {plain(text)}", file=sys.stderr, flush=True)
        threading.Timer(ABORT_SECONDS, os._exit, (HUNG,)).start()  # MPI itself may be what hangs
        MPI.COMM_WORLD.Abort(HUNG)

    def _blame(self, before: list[str | None], after: list[str | None]) -> str:
        if self.log.folder is None:
            return f"rank {self.rank} is in {self._phase} (with a folder of the run all ranks would be named)"
        found = [f"rank {rank} {what}" for rank in range(self.num_ranks) if (what := _fault(before[rank], after[rank]))]
        if found:
            return "; ".join(found[:8]) + "; the others wait"
        told = [f"rank {rank} {_doing(json.loads(text or 'null'))}" for rank, text in enumerate(after[:8])]
        return f"all ranks wait for one another: {'; '.join(told)}"


def _frames() -> dict[int, FrameType]:
    """What each thread runs.

    Frame objects are made here, while other threads stand still. A cycle collection that this sets off may let them go
    on, and CPython 3.11 then gives an object that has taken the frame's place: no collection meanwhile, and no such.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        found = sys._current_frames()
    finally:
        if collects:
            gc.enable()
    return {thread: frame for thread, frame in found.items() if isinstance(frame, FrameType)}


def _compiles() -> bool:
    """Whether a thread of this process compiles a kernel, waits for one that does, or imports a module."""
    for top in list(_frames().values()):
        frame: FrameType | None = top
        while frame is not None:
            if any(part in frame.f_code.co_filename for part in COMPILING_IN):
                return True
            frame = frame.f_back
    return False


def _seconds(text: str | None) -> float:
    """How long a rank says that its phase lasts; for ever where it says nothing that can be read."""
    try:
        return float(json.loads(text or "null")["seconds"])
    except (TypeError, ValueError, KeyError, RecursionError, OverflowError):
        return float("inf")


def _fault(before: str | None, after: str | None) -> str | None:
    """What is wrong with a rank, from two of its statuses; None where it just waits."""
    try:
        status = json.loads(after or "null")
        if status.get("ended"):
            return "has ended"
        doing = _doing(status)
        if before == after:
            return f"does not answer (stopped, or its machine is gone); it was last {doing}"
        return None if status["waits"] else f"is {doing}"
    except (AttributeError, TypeError, ValueError, KeyError, RecursionError):
        return "wrote no status"


def _doing(status: dict) -> str:
    return f"in {status['phase']} for {status['seconds']:.0f} s at {status['place']}"
