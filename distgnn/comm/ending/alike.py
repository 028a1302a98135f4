"""What a rank is about to use that is to be alike on all ranks: it travels with the comparison of calls.

    with alike.using(value, lambda: parts):      a number that stands for loss, weights, operands of rows, …
        comm.Allreduce(…)                        the call compares it first: ranks that differ all raise

`parts` names what the number was made of, as a tree. Only where ranks differ do they bring their trees together, and
say the first difference: which it is, both values, and what to write.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
from mpi4py import MPI

from distgnn.errors import RunError, on_all_ranks

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

    def using(self, value: int, describe: Callable[[], list[Part]], known: int = 0) -> "_Using":
        """The calls of the block use this."""
        used = (value, known, describe) if self.wanted else (self.value, self.known, self.describe)
        return _Using(self, used)

    def check(self, comm: MPI.Comm, most: np.ndarray, least: np.ndarray, place: str) -> None:
        """Raise RunError on every rank, where the largest and the smallest numbers of all ranks say that they differ.

        Collective: where they differ.
        """
        if most[0] == least[0] and (most[1] == least[1] or not least[1] or not most[1]):
            return
        every = comm.allgather((self.value, self.known, self.describe()))
        rank = next(rank for rank, (*numbers, _) in enumerate(every) if numbers != list(every[0][:2]))
        raise on_all_ranks(RunError(_line(rank, every[0][2], every[rank][2], place)))


class _Using:
    """What calls use within a block, which is entered at every step."""

    def __init__(self, alike: Alike, used: tuple[int, int, Callable[[], list[Part]]]):
        self._alike, self._used = alike, used

    def __enter__(self) -> None:
        self._exchange()

    def __exit__(self, *_: Any) -> None:
        self._exchange()

    def _exchange(self) -> None:
        alike, used = self._alike, self._used
        self._used = alike.value, alike.known, alike.describe
        alike.value, alike.known, alike.describe = used


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
