"""The settings of a schedule: what late rows count, when they are sent, and which settings go together.

`Algorithm` (algorithm.py) says when rows travel; a `Schedule` adds what is done with them. Needs neither torch nor MPI.
"""

from dataclasses import dataclass
from functools import partial

from distgnn.config.algorithm import Algorithm
from distgnn.config.options.option import check_choices, documented, option
from distgnn.errors import InputError

WIRES = ("float32", "bfloat16", "int8", "int4")
REMOTE_RULES = ("held", "paper")


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
    late_row_average: float = _option(
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
        if algorithm.delay == 1 and not self.late_row_average and self.remote_rule == "held":
            line = "cd-1 without late-row-average makes the loss swing on some graphs: "
            return f"{line}add --late-row-average 0.8, or take cd-5"
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
        if self.late_row_average and not delayed:
            name = algorithm.name
            raise InputError(f"--late-row-average averages rows that are late: {name} has none; choose cd-R, R >= 1")
        if self.remote_rule == "paper":
            self._check_paper(algorithm, update, delayed)

    def _check_values(self) -> None:
        check_choices(self)
        if self.warmup_epochs < 1:
            raise InputError(f"warmup_epochs is {self.warmup_epochs}: expected at least 1")
        weight = self.late_row_average
        if not 0 <= weight < 1:
            raise InputError(f"late_row_average is {weight}: expected a weight from 0 up to, but not including, 1")

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
        if self.late_row_average:
            raise InputError("--late-row-average is about held rows: --remote-rule paper holds none")
        if self.wire_backward not in (None, self.wire):
            raise InputError("--remote-rule paper exchanges no gradients: leave --wire-backward out")
