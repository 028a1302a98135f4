"""The watchdog: a thread per rank that ends a job in which nothing moves any more, and says which rank is to blame.

Each rank's thread writes now and then what its rank is doing (phase, where in the program, whether it waits for
others) into the run folder. When a phase lasts longer than the limit, it reads what all others wrote: the one that does
not wait, or does not answer, is the one that everybody waits for.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distgnn.system.output import plain
from distgnn.train.run.rank_log import RankLog

HUNG = 124  # exit code, as of timeout(1)
# Files in whose functions a rank stands only while it waits for others.
WAITING_IN = tuple(
    os.path.join("distgnn", *place)
    for place in (("comm", ""), ("ops", "sums.py"), ("train", "run", "records.py"), ("train", "checkpoint", "state.py"))
)
ABORT_SECONDS = 5.0


class Watchdog:
    """Watches the phases of one rank.

    Args:
        comm: communicator of the run; log: of this rank; seconds: the longest a phase may last (0: no limit).

    Notes: a rank that hangs inside the interpreter's lock, or is stopped, cannot answer; the others say so.
        On one rank nothing is watched: there is nobody who waits.
    """

    def __init__(self, comm: Any, log: RankLog, seconds: float):
        self.comm, self.log, self.seconds = comm, log, seconds
        self.rank, self.num_ranks = comm.rank, comm.size
        self.beat_seconds = min(max(seconds / 8, 0.2), 15.0)
        self._phase, self._since, self._beats = "start", time.monotonic(), 0
        self._main = threading.get_ident()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def phase(self) -> str:
        """What the rank is doing."""
        return self._phase

    @phase.setter
    def phase(self, name: str) -> None:
        self._phase, self._since = name, time.monotonic()

    @contextmanager
    def running(self) -> Iterator[Any]:
        """Watch while entered."""
        self._main, self._since = threading.get_ident(), time.monotonic()
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
                self.log.close()

    def _watch(self) -> None:
        # Lower ranks speak first: one line, not one per rank.
        self._tell()
        patience = self.seconds + min(self.rank, 10) * 3 * self.beat_seconds
        while not self._over.wait(self.beat_seconds):
            self._tell()
            if time.monotonic() - self._since > patience:
                self._end_the_job()
                return

    def _tell(self) -> None:
        self._beats += 1
        place, waits = self._place()
        seconds = round(time.monotonic() - self._since, 1)
        status = {"beat": self._beats, "phase": self._phase, "seconds": seconds, "waits": waits, "place": place}
        self.log.set_status(json.dumps(status))

    def _place(self) -> tuple[str, bool]:
        """Innermost line of the rank's program, and whether it waits for others there."""
        frame = sys._current_frames().get(self._main)
        if frame is None:
            return "nowhere", False
        code = frame.f_code
        waits = any(part in code.co_filename for part in WAITING_IN)
        while waits and frame.f_back and any(part in frame.f_code.co_filename for part in WAITING_IN):
            frame = frame.f_back
        return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}", waits

    def _end_the_job(self) -> None:
        from mpi4py import MPI

        before = [self.log.status_of(rank) for rank in range(self.num_ranks)]
        self._tell()
        if self._over.wait(2.5 * self.beat_seconds):
            return
        self._tell()
        after = [self.log.status_of(rank) for rank in range(self.num_ranks)]
        text = f"nothing moved for {self.seconds:g} s (--timeout): {self._blame(before, after)}"
        self.log.write(text)
        print(f"distgnn: error: {plain(text)}", file=sys.stderr, flush=True)
        threading.Timer(ABORT_SECONDS, os._exit, (HUNG,)).start()  # MPI itself may be what hangs
        MPI.COMM_WORLD.Abort(HUNG)

    def _blame(self, before: list[str | None], after: list[str | None]) -> str:
        if self.log.folder is None:
            return f"rank {self.rank} is in {self._phase} (with a run folder all ranks would be named)"
        found = [f"rank {rank} {what}" for rank in range(self.num_ranks) if (what := _fault(before[rank], after[rank]))]
        if found:
            return "; ".join(found[:8]) + "; the others wait"
        told = [f"rank {rank} {_doing(json.loads(text or 'null'))}" for rank, text in enumerate(after[:8])]
        return f"all ranks wait for one another: {'; '.join(told)}"


def _fault(before: str | None, after: str | None) -> str | None:
    """What is wrong with a rank, from two of its statuses; None where it just waits."""
    try:
        status = json.loads(after or "null")
        doing = _doing(status)
        if before == after:
            return f"does not answer (stopped, or its machine is gone); it was last {doing}"
        return None if status["waits"] else f"is {doing}"
    except (TypeError, ValueError, KeyError, RecursionError):
        return "wrote no status"


def _doing(status: dict) -> str:
    return f"in {status['phase']} for {status['seconds']:.0f} s at {status['place']}"
