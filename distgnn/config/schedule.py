"""The settings of a schedule: what late rows count, when they are sent, and which settings go together.

`Algorithm` (algorithm.py) says when rows travel; a `Schedule` adds what is done with them. Needs neither torch nor MPI.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from distgnn.config.algorithm import Algorithm
from distgnn.config.options.option import check_choices, documented, option
from distgnn.errors import InputError

WIRES = ("float32", "bfloat16", "int8", "int4")
REMOTE_RULES = ("held", "paper")
REMOVED = {"adaptive": "--adaptive", "error_feedback": "--error-feedback"}  # of earlier versions, off by default


_option = partial(option, panel="Algorithm and exchange")


@documented
@dataclass(frozen=True)
class Schedule:
    """How rows of training steps travel."""

    warmup_epochs: int = _option(1, "Exact, synchronous epochs at the start of cd-R; they fill all held rows.")
    wire: str = _option("float32", "Width of rows in training messages.", choices=WIRES)
    wire_backward: str | None = _option(
        None, "Width of gradients in messages.", choices=WIRES, default_text="as --wire"
    )
    remote_rule: str = _option(
        "held",
        "held: what arrived last stays in use. paper: remote partial sums count only in the epoch in which they "
        "arrive, and gradients are not exchanged (the published cd-R).",
        choices=REMOTE_RULES,
    )
    smooth: float = _option(
        0.0, "Weight of the held row in a moving average with the row that arrives (cd-R; 0: it is replaced)."
    )

    @property
    def wires(self) -> tuple[str, str]:
        """Width forward and backward."""
        return self.wire, self.wire_backward or self.wire

    @property
    def exact(self) -> bool:
        """Does cd-0 with this schedule compute what one process computes?"""
        return self.wires == ("float32", "float32")

    def caution(self, algorithm: Algorithm) -> str | None:
        """A line for a schedule that was measured to harm training (docs/LOG.md); None for all others."""
        if algorithm.delay == 1 and not self.smooth and self.remote_rule == "held":
            return "cd-1 without smoothing makes the loss swing on some graphs: add --smooth 0.8, or take cd-5"
        return None

    def check(self, algorithm: Algorithm, update: str) -> None:
        """Refuse what makes no sense together.

        Raises:
            InputError: for the first setting that no schedule can have, or that this algorithm or update would ignore.
        """
        self._check_values()
        delayed = algorithm.delay is not None
        if algorithm.no_exchange:
            self._check_no_exchange()
        if self.smooth and not delayed:
            raise InputError(f"--smooth averages rows that are late: {algorithm.name} has none; choose cd-R, R >= 1")
        if self.remote_rule == "paper":
            self._check_paper(algorithm, update, delayed)

    def _check_values(self) -> None:
        check_choices(self)
        if self.warmup_epochs < 1:
            raise InputError(f"warmup_epochs is {self.warmup_epochs}: expected at least 1")
        if not 0 <= self.smooth < 1:
            raise InputError(f"smooth is {self.smooth}: expected a weight from 0 up to, but not including, 1")

    def _check_no_exchange(self) -> None:
        ignored = {
            "--wire": self.wires != ("float32", "float32"),
            "--warmup-epochs": self.warmup_epochs != 1,
        }
        for name, given in ignored.items():
            if given:
                raise InputError(f"0c sends nothing in training: leave {name} out, or choose cd-R")

    def _check_paper(self, algorithm: Algorithm, update: str, delayed: bool) -> None:
        if not delayed:
            raise InputError(f"--remote-rule paper is about late rows: {algorithm.name} has none; choose cd-R, R >= 1")
        if update != "copies":
            raise InputError("--remote-rule paper is a rule of update on copies: add --update copies")
        if self.smooth:
            raise InputError("--smooth is about held rows: --remote-rule paper holds none")
        if self.wire_backward not in (None, self.wire):
            raise InputError("--remote-rule paper exchanges no gradients: leave --wire-backward out")


def drop_removed(settings: dict[str, Any], where: str | Path) -> dict[str, Any]:
    """Settings of an earlier version's run without those that no longer exist; names may have a section in front.

    Raises:
        InputError: where one was switched on: this version cannot train on as that one would have.
    """
    for name, value in settings.items():
        option = REMOVED.get(name.rpartition(".")[2])
        if option is not None and value:
            raise InputError(f"{where} was trained with {option}, which this version does not have: train anew")
    return {name: value for name, value in settings.items() if name.rpartition(".")[2] not in REMOVED}
