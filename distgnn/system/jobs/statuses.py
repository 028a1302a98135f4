"""What the ranks of a run tell one another of themselves (rank_log.py), as one of them hears it."""

import json
import time
from typing import Any

from distgnn.system.jobs.rank_log import RankLog

# What reading a status that is not whole, or not ours, may raise.
UNREADABLE = (AttributeError, TypeError, ValueError, KeyError, RecursionError, OverflowError)


class Statuses:
    """The ranks' statuses, and since when each has told nothing new.

    Args: log: of the rank that listens; silent_seconds: a rank that has told nothing new for longer does not answer.

    Notes: what is heard of a rank for the first time counts as new.
    """

    log: RankLog
    num_ranks: int
    silent_seconds: float

    def __init__(self, log: RankLog, num_ranks: int, silent_seconds: float):
        self.log, self.num_ranks, self.silent_seconds = log, num_ranks, silent_seconds
        self._texts: dict[int, str | None] = {}
        self._new_at: dict[int, float] = {}

    def forget(self) -> None:
        """Begin anew."""
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
            return "; ".join(found[:8]) + "; the others wait"
        told = [f"rank {rank} {_doing(json.loads(text or 'null'))}" for rank, text in enumerate(texts[:8])]
        return f"all ranks wait for one another: {'; '.join(told)}"

    def _hear(self, rank: int) -> str | None:
        text = self.log.status_of(rank)
        if rank not in self._texts or text != self._texts[rank]:
            self._texts[rank], self._new_at[rank] = text, time.monotonic()
        return text


def fault(text: str | None, answers: bool) -> str | None:
    """What is wrong with a rank that tells this, and answers or does not; None where it just waits."""
    try:
        status = json.loads(text or "null")
        if status.get("ended"):
            return "has ended"
        doing = _doing(status)
        if not answers:
            return f"does not answer (stopped, or its machine is gone); it was last {doing}"
        return None if status["waits"] else f"is {doing}"
    except UNREADABLE:
        return "wrote no status"


def phase_seconds(text: str | None) -> float:
    """How long a rank says that its phase lasts; for ever where it says nothing that can be read."""
    try:
        return float(json.loads(text or "null")["seconds"])
    except UNREADABLE:
        return float("inf")


def _doing(status: dict[str, Any]) -> str:
    return f"in {status['phase']} for {status['seconds']:.0f} s at {status['place']}"
