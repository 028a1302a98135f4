"""What is to be alike on all ranks: the calls that they make, and what they are about to use in them.

    with alike.using(value, lambda: parts):      a number that stands for loss, weights, operands of rows, …
        comm.Allreduce(…)                        the call compares it first: ranks that differ all raise

`parts` names what the number was made of, as a tree. Only where ranks differ do they bring their trees together, and
say the first difference: which it is, both values, and what to write.

Ranks that make different calls: one asks for a number of all rows where the others do not.

    if graph.rank == 0:
        print(x.mean())         # the others never call this: their next call would be taken for it

Before a collective call, ranks compare what they are about to do; a call that moves rows carries its kind in its tag.
Where calls of another kind meet, ranks wait for ever: a rank that waits tells rank 0 its last calls.
"""

import inspect
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
from mpi4py import MPI

from distgnn.errors import RunError, on_all_ranks
from distgnn.system.jobs.doing import is_users

SEED = "draw it alike on all ranks: seed its generator with the same number, np.random.seed(0) for NumPy's"
ADVICE = {  # kind of a difference -> what to write
    "a number beside rows": f"{SEED}, or take it from one rank, graph.comm.bcast(value)",
    "a tensor beside rows": f"{SEED}, torch.manual_seed(0) for torch's, or make it from rows",
    "the column": "give all ranks the same order, sorted(names) in place of a set",
    "the function on rows": "every rank must run the same model on the same rows",
    "torch's random numbers": "call torch.manual_seed(0) on all ranks, and draw as often on each",
    "the loss": "make it of rows of all ranks and of numbers that are alike on all; a sum of x.to_local() is one "
    "rank's, and is rounded in another order",
    "the optimiser": "give all ranks the same settings and schedule, from one place: a study runs on rank 0, and "
    "graph.comm.bcast(settings) tells the others",
    "the modules": "call model.train() or model.eval() on all ranks, and give all the same dropout",
    "the weights": "change weights on all ranks alike, or call dg.broadcast_parameters(model, graph) after a change",
}


class Part(NamedTuple):
    """A node of what a rank uses. Args: kind: of `ADVICE`, or empty; text: its value; parts: what it was made of."""

    kind: str
    text: str
    number: int
    parts: "tuple[Part, ...]" = ()


class Alike:
    """What the next collective calls of one rank are about to use.

    Attributes:
        wanted: ranks compare; False switches it off (`dg.load(check_steps=False)`).
        value: stands for what all ranks have; 0: nothing.
        known: stands for what a rank may not know of: compared where none of the ranks has 0.
        met: optimisers whose first step was compared.
    """

    def __init__(self) -> None:
        self.wanted: bool = True
        self.value: int = 0
        self.known: int = 0
        self.met: WeakSet[Any] = WeakSet()
        self.describe: Callable[[], list[Part]] = list

    @property
    def numbers(self) -> tuple[int, int]:
        return self.value, self.known

    @contextmanager
    def using(self, value: int, describe: Callable[[], list[Part]], known: int = 0) -> Iterator[None]:
        """The calls of the block use this."""
        before = self.value, self.known, self.describe
        if self.wanted:
            self.value, self.known, self.describe = value, known, describe
        try:
            yield
        finally:
            self.value, self.known, self.describe = before

    def check(self, comm: MPI.Comm, most: np.ndarray, least: np.ndarray, place: str) -> None:
        """Raise RunError on every rank, where the largest and the smallest numbers of all ranks say that they differ.

        Collective: where they differ.
        """
        if most[0] == least[0] and (most[1] == least[1] or not least[1] or not most[1]):
            return
        every = comm.allgather((self.value, self.known, self.describe()))
        rank = next(rank for rank, (*numbers, _) in enumerate(every) if numbers != list(every[0][:2]))
        raise on_all_ranks(RunError(_line(rank, every[0][2], every[rank][2], place)))


def _line(rank: int, ours: list[Part], theirs: list[Part], place: str) -> str:
    one, two = first_difference(ours, theirs) or (Part("", "", 0), Part("", "", 0))
    kind = one.kind or two.kind or "the function on rows"
    where = f" at {place}" if place else ""
    same = f"{one.text} has other numbers on rank {rank} than on rank 0"
    values = f"rank 0 has {one.text}, rank {rank} has {two.text}" if one.text != two.text else same
    return f"ranks differ in {kind}{where}: {values}: {ADVICE[kind]}"


def first_difference(ours: list[Part], theirs: list[Part]) -> tuple[Part, Part] | None:
    """The innermost first pair of parts that differ."""
    for one, two in zip(ours, theirs, strict=False):
        if one.number == two.number:
            continue
        if one.kind == two.kind and one.text == two.text and one.parts and two.parts:
            inner = first_difference(list(one.parts), list(two.parts))
            if inner is not None:
                return inner
        return one, two
    return None


def number_of(values: Any) -> int:
    """A number that stands for numbers, as a tuple; never 0. The same in every process."""
    return hash(values) or 1


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
