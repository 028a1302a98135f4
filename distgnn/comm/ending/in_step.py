"""Ranks that make different calls: one asks for a number of all rows where the others do not.

    if graph.rank == 0:
        print(x.mean())         # the others never call this: their next call would be taken for it

Before a collective call, ranks compare what they are about to do; a call that moves rows carries its kind in its tag.
Where calls of another kind meet, ranks wait for ever: a rank that waits tells rank 0 its last calls.
"""

import inspect
import os
import zlib
from collections import deque
from pathlib import Path
from types import CodeType

import numpy as np
from mpi4py import MPI

from distgnn.comm.ending.alike import Alike
from distgnn.errors import RunError, on_all_ranks
from distgnn.system.jobs.doing import is_users

REMEMBERED = 64
EVERY_RANK = "every rank must make the same calls, also for a number that only one of them prints"
ROWS = f"{Path(__file__).parents[2] / 'rows'}{os.sep}"

_of_rows: dict[CodeType, bool | None] = {}  # code: of distgnn/rows, other than that, or None for the user's


class Calls:
    """The last calls of one rank.

    Attributes: number: how many there were; started: those among them that do not wait.
    """

    def __init__(self) -> None:
        self.number: int = 0
        self.started: int = 0
        self._recent: deque[tuple[int, str]] = deque(maxlen=REMEMBERED)

    def begin(self, kind: str, waits: bool = True) -> None:
        """Count a call. Those that do not wait may have another place among the others on each rank."""
        self.number += 1
        self.started += not waits
        if waits:
            self._recent.append((self.number - self.started, kind))

    def forget(self) -> None:
        self._recent.clear()

    def recent(self) -> list[tuple[int, str]]:
        """(number among the calls that wait, kind), the latest last."""
        return list(self._recent)

    def other_than(self, theirs: list[tuple[int, str]]) -> list[str]:
        """[this rank's call, theirs], the first that differ of those that both remember; empty where none do."""
        mine = dict(self.recent())
        pairs = ([mine.get(number, kind), kind] for number, kind in theirs)
        return next((pair for pair in pairs if pair[0] != pair[1]), [])


def check_kind(channel: MPI.Comm, kind: str, alike: Alike) -> None:
    """Compare the kind of a collective call that begins, and what it is about to use.

    Collective: yes. Raises: RunError on every rank.
    """
    mine = np.array([zlib.crc32(kind.encode()), *alike.numbers], np.int64)
    most = np.concatenate([mine, -mine])
    channel.Allreduce(MPI.IN_PLACE, most, op=MPI.MAX)
    if most[0] != -most[3]:
        raise on_all_ranks(RunError(difference(dict(enumerate(channel.allgather(kind))))))
    alike.check(channel, most[1:3], -most[4:], kind.partition(" at ")[2])


def difference(kinds: dict[int, str]) -> str:
    """The line on ranks that make different calls, by rank."""
    (first, of_first), *others = kinds.items()
    odd, of_odd = next(pair for pair in others if pair[1] != of_first)
    return f"rank {first} calls {of_first}, rank {odd} {of_odd}: {EVERY_RANK}"


def line_of_rows() -> str:
    """Where the user calls a function of rows; empty for other calls: a script may make these on a line per rank."""
    frame, found = inspect.currentframe(), False
    while frame is not None:
        code = frame.f_code
        if code not in _of_rows:
            _of_rows[code] = None if is_users(frame) else code.co_filename.startswith(ROWS)
        of_rows = _of_rows[code]
        if of_rows is None:
            return f" at {Path(code.co_filename).name}:{frame.f_lineno}" if found else ""
        found = found or of_rows
        frame = frame.f_back
    return ""
