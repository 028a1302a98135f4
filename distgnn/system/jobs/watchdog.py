"""The watchdog: a thread per rank that ends a job in which nothing moves any more, and says which rank is to blame.

Each rank's thread writes now and then what its rank is doing (phase, where in the program, whether it waits for
others) into the run's folder. Once a phase has used up half of the limit, the lowest rank that answers listens
to all others: the one that does not wait, or has told nothing new of late, is the one that everybody waits for. It ends
the job within the limit, unless a rank has recovered by then. Of a training loop that is not the trainer's nobody tells
the phase, so it looks at what the loop exchanges: `distgnn/comm/ending/loop_watch.py`.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from distgnn.system.jobs.doing import compiling, hear_of_compiling, importing, line_of, waits
from distgnn.system.jobs.keeper import HUNG
from distgnn.system.jobs.own_rank import abort_job
from distgnn.system.jobs.rank_log import RankLog, note
from distgnn.system.output import ERROR, say

COMPILE_SECONDS = 900.0  # of a phase at most, with those of importing
ENDING_SECONDS = 5.0  # of the limit: within it all has been said, and the job is over
ABORT_SECONDS = 5.0
# What reading a status that is not whole, or not ours, may raise.
UNREADABLE = (AttributeError, TypeError, ValueError, KeyError, RecursionError, OverflowError)
SHORTEST_START = 60.0  # importing takes half a minute on a machine with other work


class Loop(NamedTuple):
    """A loop of one's own. Args: moves: exchanges and sums so far: each begins a phase; option: who sets the limit."""

    moves: Callable[[], tuple[int, int]]
    option: str


class Watchdog:
    """Watches the phases of one rank.

    Args:
        comm: communicator of the run; log: of this rank; seconds: after which a job that stands still has been ended
            (0: no limit). A phase may last nine tenths of it, or 5 s less where that is more.
        loop: of one's own, of which nobody tells the phase.

    Notes: a rank that hangs inside the interpreter's lock, or is stopped, cannot answer; the others say so. Time in
        which this process did not run (stopped, a sleeping machine) does not count, nor does compiling or importing;
        without a run folder a rank knows these of itself only. A single rank has no thread: there is nobody who waits.
    """

    def __init__(self, comm: Any, log: RankLog, seconds: float, loop: Loop | None = None):
        self.comm, self.log, self.seconds, self.loop = comm, log, seconds, loop
        self.option = "--timeout" if loop is None else loop.option
        self._moved = (-1, -1)
        self.rank, self.num_ranks = comm.rank, comm.size
        self.beat_seconds: float = min(max(seconds / 16, 0.2), 15.0)
        self.patience = patience(seconds)
        if log.folder is None:
            self.patience += min(comm.rank, 10) * 6 * self.beat_seconds  # lower ranks speak first: one line, not many
        self._statuses = Statuses(log, comm.size, max(3 * self.beat_seconds, self.patience / 5))
        self._phase, self._since, self._beats = "start", time.monotonic(), 0
        self._excused = self._compiled = 0.0  # seconds of this phase that do not count; of them as compiling
        self._main = threading.get_ident()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def phase(self) -> str:
        return self._phase

    @phase.setter
    def phase(self, name: str) -> None:
        self._phase, self._since, self._excused, self._compiled = name, time.monotonic(), 0.0, 0.0
        note.set(phase=name)

    @contextmanager
    def running(self) -> Iterator[Any]:
        self._main, self.phase = threading.get_ident(), self._phase
        note.set(limit=str(self.seconds) if self.seconds > 0 else "")
        if self.seconds > 0 and self.num_ranks > 1 and self._thread is None:
            hear_of_compiling()
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
            note.set(phase="", limit="")

    def _watch(self) -> None:
        self._tell()
        while not self._pause(self._rest()):
            text = self._check()
            if text is not None:
                self._end_the_job(text)
                return

    def _check(self) -> str | None:
        self._look()
        self._tell()
        return self._hang()

    def _rest(self) -> float:
        """Seconds to the next look: a beat, or what is left of the phase's time."""
        left = self.patience - self._age()
        return min(self.beat_seconds, left + 0.01) if left > 0 else self.beat_seconds

    def _look(self) -> None:
        """See whether the rank has gone on, where nobody sets the phase."""
        if self.loop is not None and self.loop.moves() != self._moved:
            self._moved = self.loop.moves()
            self.phase = f"the loop, after {self._moved[0]} exchanges,"

    def _leave(self) -> None:
        """That it has ended stays known until all have left."""
        self.log.set_status(json.dumps({"ended": True}))
        if all('"ended"' in (text or "") for text in self._statuses.hear()):
            self.log.remove_statuses()

    def _pause(self, seconds: float) -> bool:
        """Wait, and see how much of the time does not count; whether the watch is over."""
        began = time.monotonic()
        over = self._over.wait(seconds)
        took = time.monotonic() - began
        if took > seconds + 2 * self.beat_seconds:  # this process was not running
            self._excused += took - seconds
            self._statuses.forget()  # the others may have been stopped as well
        elif self._compiled < COMPILE_SECONDS and (compiling or importing(self._main)):
            self._excused += took
            self._compiled += took
        return over

    def _age(self) -> float:
        """Seconds of the phase that count."""
        return max(time.monotonic() - self._since - self._excused, 0.0)

    def _tell(self) -> None:
        self._beats += 1
        place, name = self._place()
        status = {"beat": self._beats, "phase": self._phase, "seconds": round(self._age(), 1)}
        status |= {"waits": name, "place": place}
        self.log.set_status(json.dumps(status))

    def _place(self) -> tuple[str, str]:
        """The line that the rank runs, and what it waits for there, if it does."""
        name, _ = waits.get(self._main, ("", 0.0))
        line = line_of(self._main, users=bool(name)) or line_of(self._main) or "nowhere"
        return line + (f", compiling {compiling[-1]}" if compiling else ""), name

    def _hang(self) -> str | None:
        """What to say of a job in which nothing moves; None where something does, or another rank is to say it."""
        if self._age() <= self.patience / 2:
            self._statuses.forget()
            return None
        if self.log.folder is not None and not self._statuses.speaks_first(self.rank):
            return None
        told = self._statuses.hear()
        if self._age() < self.patience or self._goes_on(told):
            return None
        blame = f"rank {self.rank} is in {self._phase} (with a folder of the run all ranks would be named)"
        if self.log.folder is not None:
            blame = self._statuses.blame()
        return f"nothing moved for {self._age():.3g} s ({self.option} {self.seconds:g}): {blame}"

    def _goes_on(self, told: list[str | None]) -> bool:
        """Whether every rank answers, and one has not used up its time yet: it was stopped, or compiled.

        Notes: or the last ranks finish what is theirs alone.
        """
        statuses = [read_status(text) for text in told]
        if any("ended" in one for one in statuses) and not any(one.get("waits") for one in statuses):
            return True
        answered = all(text is not None and self._statuses.answers(rank) for rank, text in enumerate(told))
        return answered and min(map(phase_seconds, told)) < self.patience - 2 * self.beat_seconds

    def _end_the_job(self, text: str) -> None:
        if self.loop is None:
            self.log.write(text)
        else:
            self.log.remove_statuses()
        say(text, ERROR)
        threading.Timer(ABORT_SECONDS, os._exit, (HUNG,)).start()  # MPI itself may be what hangs
        abort_job(HUNG)


@contextmanager
def start_limit(seconds: float, shortest: float = SHORTEST_START) -> Iterator[None]:
    """The block may take `seconds`, or `shortest` if that is more; 0: no limit. It comes before the watchdog.

    Notes: MPI_Init of one rank waits for the others', in compiled code and with the interpreter's lock: no thread of
        ours could speak. A timer of the kernel ends the process (SIGALRM: exit code 142); who started it, the others.
    """
    if seconds > 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, shortest))
    try:
        yield
    finally:
        if seconds > 0:
            signal.setitimer(signal.ITIMER_REAL, 0)


def patience(seconds: float) -> float:
    """What a phase may last, of a limit."""
    return seconds - min(seconds / 10, ENDING_SECONDS)


class Statuses:
    """The ranks' statuses, and since when each has told nothing new.

    Args: log: of the rank that listens; silent_seconds: a rank that has told nothing new for longer does not answer.

    Notes: what is heard of a rank for the first time counts as new.
    """

    def __init__(self, log: RankLog, num_ranks: int, silent_seconds: float):
        self.log, self.num_ranks, self.silent_seconds = log, num_ranks, silent_seconds
        self._texts: dict[int, str | None] = {}
        self._new_at: dict[int, float] = {}

    def forget(self) -> None:
        self._texts.clear()
        self._new_at.clear()

    def hear(self) -> list[str | None]:
        """What each rank tells now; None where nothing can be read."""
        return [self._hear(rank) for rank in range(self.num_ranks)]

    def speaks_first(self, rank: int) -> bool:
        """Whether no lower rank answers. As a rule that is known from one file."""
        return not any(self._hear(lower) is not None and self.answers(lower) for lower in range(rank))

    def answers(self, rank: int) -> bool:
        """Whether a rank has told something new of late, as far as was heard."""
        return time.monotonic() - self._new_at.get(rank, -float("inf")) <= self.silent_seconds

    def blame(self) -> str:
        """Who holds the others up."""
        texts = self.hear()
        wrong = [fault(text, self.answers(rank)) for rank, text in enumerate(texts)]
        found = [f"rank {rank} {what}" for rank, what in enumerate(wrong) if what]
        if found:
            return "; ".join(found[:8]) + ("; the others wait" if len(found) < self.num_ranks else "")
        told = [f"rank {rank} {_doing(read_status(text))}" for rank, text in enumerate(texts[:8])]
        return f"all ranks wait for one another: {'; '.join(told)}"

    def _hear(self, rank: int) -> str | None:
        text = self.log.status_of(rank)
        if rank not in self._texts or text != self._texts[rank]:
            self._texts[rank], self._new_at[rank] = text, time.monotonic()
        return text


def read_status(text: str | None) -> dict[str, Any]:
    """What a rank tells; empty where that cannot be read."""
    try:
        status = json.loads(text or "null")
        if status.get("ended"):
            return {"ended": True}
        words = {name: str(status[name]) for name in ("phase", "waits", "place")}
        return words | {"seconds": float(status["seconds"])}
    except UNREADABLE:
        return {}


def fault(text: str | None, answers: bool) -> str | None:
    """What is wrong with a rank that tells this, and answers or does not; None where it just waits."""
    status = read_status(text)
    if not status:
        return "wrote no status"
    if "ended" in status:
        return "has ended"
    if not answers:
        return f"does not answer (stopped, or its machine is gone); it was last {_doing(status)}"
    return None if status["waits"] else f"is {_doing(status)}"


def phase_seconds(text: str | None) -> float:
    """How long a rank says that its phase lasts; for ever where it says nothing that can be read."""
    return read_status(text).get("seconds", float("inf"))


def _doing(status: dict[str, Any]) -> str:
    waits = f", waiting in {status['waits']}" if status["waits"] else ""
    return f"in {status['phase']} for {status['seconds']:.0f} s at {status['place']}{waits}"
